"""The script of every code point; tools/script_table.py writes the table.

From the Unicode Character Database, version 16.0.  The table is packed as in :mod:`constrain.unicode_categories`.
Unicode data is Copyright Unicode, Inc., under the Unicode License v3.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from constrain.unicode_categories import unpack_runs

_NAMES = (
    "unknown zzzz,common zyyy,latin latn,bopomofo bopo,inherited zinh qaai,greek grek,coptic copt qaac,cyrillic cyrl,"
    "armenian armn,hebrew hebr,arabic arab,syriac syrc,thaana thaa,nko nkoo,samaritan samr,mandaic mand,devanagari de"
    "va,bengali beng,gurmukhi guru,gujarati gujr,oriya orya,tamil taml,telugu telu,kannada knda,malayalam mlym,sinhal"
    "a sinh,thai,lao laoo,tibetan tibt,myanmar mymr,georgian geor,hangul hang,ethiopic ethi,cherokee cher,canadianabo"
    "riginal cans,ogham ogam,runic runr,tagalog tglg,hanunoo hano,buhid buhd,tagbanwa tagb,khmer khmr,mongolian mong,"
    "limbu limb,taile tale,newtailue talu,buginese bugi,taitham lana,balinese bali,sundanese sund,batak batk,lepcha l"
    "epc,olchiki olck,braille brai,glagolitic glag,tifinagh tfng,han hani,hiragana hira,katakana kana,yi yiii,lisu,va"
    "i vaii,bamum bamu,sylotinagri sylo,phagspa phag,saurashtra saur,kayahli kali,rejang rjng,javanese java,cham,taiv"
    "iet tavt,meeteimayek mtei,linearb linb,lycian lyci,carian cari,olditalic ital,gothic goth,oldpermic perm,ugariti"
    "c ugar,oldpersian xpeo,deseret dsrt,shavian shaw,osmanya osma,osage osge,elbasan elba,caucasianalbanian aghb,vit"
    "hkuqi vith,todhri todr,lineara lina,cypriot cprt,imperialaramaic armi,palmyrene palm,nabataean nbat,hatran hatr,"
    "phoenician phnx,lydian lydi,meroitichieroglyphs mero,meroiticcursive merc,kharoshthi khar,oldsoutharabian sarb,o"
    "ldnortharabian narb,manichaean mani,avestan avst,inscriptionalparthian prti,inscriptionalpahlavi phli,psalterpah"
    "lavi phlp,oldturkic orkh,oldhungarian hung,hanifirohingya rohg,garay gara,yezidi yezi,oldsogdian sogo,sogdian so"
    "gd,olduyghur ougr,chorasmian chrs,elymaic elym,brahmi brah,kaithi kthi,sorasompeng sora,chakma cakm,mahajani mah"
    "j,sharada shrd,khojki khoj,multani mult,khudawadi sind,grantha gran,tulutigalari tutg,newa,tirhuta tirh,siddham "
    "sidd,modi,takri takr,ahom,dogra dogr,warangciti wara,divesakuru diak,nandinagari nand,zanabazarsquare zanb,soyom"
    "bo soyo,paucinhau pauc,sunuwar sunu,bhaiksuki bhks,marchen marc,masaramgondi gonm,gunjalagondi gong,makasar maka"
    ",kawi,cuneiform xsux,cyprominoan cpmn,egyptianhieroglyphs egyp,anatolianhieroglyphs hluw,gurungkhema gukh,mro mr"
    "oo,tangsa tnsa,bassavah bass,pahawhhmong hmng,kiratrai krai,medefaidrin medf,miao plrd,tangut tang,nushu nshu,kh"
    "itansmallscript kits,duployan dupl,signwriting sgnw,nyiakengpuachuehmong hmnp,toto,wancho wcho,nagmundari nagm,o"
    "lonal onao,mendekikakui mend,adlam adlm"
)

_RUNS = 1708
_PACKED = (
    "c-p0xYiwLc701sx^SXEL-Iu-gI&1I4uDy=mk378IB#sj&PD0W=8uDyN3{Blvpn;|oT1rhw6CP=4DX*r`Bqfv<Ap{Zv!l#0ud;p{%m52`rMSS4{Qp"
    "E>^5aI)8?)5rx+cXIF=R0$EX6~7D&irTg8VMI8P%2a~f4S13m5~O#2tUH&0+K-+0AoW)Kq3iANHGCe2imkuV>$yjr{NYfz6;rRq3ISh-;5mGjFv?"
    "#xe0l|JhZ+eZP&pzC=?+Ai={H$ns%n+Ht57o=z^{aLN_dp=!xh>1{@vGSEnEPVIZbw5C(^!j)Y+t9vOwvWxy;q&W{n0cpV^RNHJVWnis=OaStHzA"
    "3q1k=2<{>T|vZ(s9Z@JbR74X<LzM@glYs<9kRqFjI(RwSi>3!C;=-Ku*P-CHMvo%U=^%h17^Z`Krqi*o^cY^G3oWVehQ{aumNxbY$(9Sn8GwnZ@O"
    "V}eps=??VDf|&*N~O(1P?MB3;M&=BTBK19aapnm%%>1a;!>&5MZIIBQYnU<<s5<AbfRbsO9c+hO|-*a16t-2r#NZsxtP2lniR#q5Lq5pk#ou5%C$"
    "-gyWP!TTJC;qVbS0yFOi<^!;pyN<%$%q+~_1NYnu_udDN`{4n{F*pVvjIi*b2oCT;I1V3%kHAB4!tpRX3?F44VLk>QXYD`AJhs3mn8z0(AAd{3C*"
    "P4Lm^tQC%t@vfKFt*1RK$~T8cv^q#e62>v+z0S_&lWHEc4VnPe*)V5zpMfv+%`;)$Uw)4r0CpUuM1nUxf+yn&WwR9?mf@Ebw*s2D}(?{zCO4>*PF"
    "~zX%u4LoH^!#=0Gk?k~Vgbz(V4w?$$WHk_)r{P%nl98Li%7ck7FdA<cNGv9_+n7YPaWxf+pm+k+{Tbvq4_+P2MjW}8B@;X0+DO5S$^FI^aN>TQ>L"
    "_rccbNmr}WpQmX{Up+>h!q+ofn#2))PX{cNghz<AF4ba!;U1bCNVskTt#A#QrJd_fhzIN--?A@GDUfb9uYO8VY`xizLy?KLPbm1s+MtIbhz=ed^("
    "a4XxI;vu>yUbEACfh`CbsFB!$NCeci6>b9RLhk=+JMsM(0*!H6W-pa`XME#%y9QVD)KhiP)wr6FgPBw6Ff9o89)yEO4bJaOoHmZ5VvO?j>xL<>8I"
    "WO$h7X*_L7gf)q6U2ax|EnMbEacR(!EN{k6*^Ql?cO$9m0#@80>O(n4TX+sm50^cBwJ&^2@#;&OqO!>Az3j@IDu}HjFwH(Tk)MrxqVO<TZM92YRv"
    "$2ZYTA}Clp!x@SR@tn%e)Q*mD`BcVu1o4o21gn?KnEQ+>=$25@I+|eIz_jV8UfyyL_mM!Vx7oRns^*N6kEag)a}|Pl;A=BuUcPNN$xv+J^yBz>Nv"
    "fo@!53*oekf%=8F(PBjNj7t9>}T~ZnEn<<}ACJw)9D2X}W;9|;$JMwrSyo&iIo@<FO$&(WIx;4gwBvc<B#&o&jW4eTsrCmd~{}p^~+2q_Me99MN{"
    "_uAxJG0;Gm=#klE$B5R2ZYsCZ`uoWc@VKPz=GJ0{K`co9P^Xp7HFzP<v5Q_<WC<*B}wia<n&(J7v|*1sr7FX-Cr@GQh9U>>qKiGO8=E;C#__!(`l"
    "F6+prNOzx<uyUM%xo3oH&$Nkpbui)`E~3Ng>)Sk08|cuWa7Ap9MiIvg6nlkD6`3R`8TFIrWfDzd{e*}HSN$gXtCPPx=u9-vFL)Bb!dmWMwkzu9^%"
    "n%`agjVxU3=Vl(!jDES~`NKS&Qf&hB3Mb1gGE0M!TRav~frMoBn{v6_Ekl2$FwNvODzCxF(CpkYwk)yC=%t?36;bf$3LhK2yu6eaW9&<BbH37+&H"
    "3BeU!1Z?ON`Yku)*v0XD}Ny;Lt=QXZADDtCZF9#+{28ZC$r9`4!0s#o2O+t6*G9uF0dqAymc9o_(2LdMX_o1FI8_HI{O=t(8(TcNte7-5nxtWmYI"
    "*k<XIQx6>XCQqa2D+nq>{8~Y<Zt*rKO0F$;L%IraMi}RshxS4zoPjlVHm*&A7Mh1ICVGpK86L`+dK8Py#1^y;`SK_K?Unr?x$;&HhuO}``Q*uJuf"
    "mRnu+i7b#vL@B|eNlTI@4S1f95<OsH$y<le-3$b`l{$b|1TS5lmI+WBE<_%n3UdGajM|~l@PvRLCQZC|AqR8V%s3){1dDHfwr3_M8+dilxv!%AI*"
    "l@aG$^A4DP{A?(B3YD~8c|vyPSPaoxu0;|#Op-XOX}G<sI06sE3tC9QwY{TYhZKuxsc@d3fxK+<be%G4BI5xrNjPvSLxRyvvDFOkwc+xUMJdRA}P"
    "w&v&D-0J-2KO6sS=(uvfA8~vA<G#6QWi-HIMhSK+vz(r$et9%Z@j;iuF8e*K=8+Qp(&tk_pTj>GnGp%`h&-bCG)slD%1gA=D^e(F;tdLuln_=`O^"
    "OdS-#mvnd)mA9TPpvwtp9{`av=GGTIx;tQsayA&%v)N>RS1CKk38b%pCp=pZRz2AAyxnWd"
)


SCRIPTS: dict[str, int] = {name: number for number, names in enumerate(_NAMES.split(",")) for name in names.split()}
"""The number of a script in the table, by its long and short names, in lower case and without ``_``."""


@lru_cache(maxsize=1)
def script_table() -> npt.NDArray[np.uint8]:
    """The script of each code point as a number of :data:`SCRIPTS`: uint8[0x110000], read-only."""
    table = unpack_runs(_PACKED, _RUNS)
    table.flags.writeable = False
    return table
