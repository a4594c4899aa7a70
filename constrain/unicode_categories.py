"""The general category of every code point, White_Space and the ideographs.

From the Unicode Character Database, version 16.0.  Python's own ``unicodedata`` is another version in each Python, and
takes 60 ms for what this table says in 5.  Tokenizers split by it, and patterns mean it by ``\\p{...}``.

The table is packed as base 85 of zlib of one byte for each run of equal category, then the length of each run (7 bits a
byte, lowest first, high bit set on all bytes but the last).
Unicode data is Copyright Unicode, Inc., under the Unicode License v3.
"""

from __future__ import annotations

import zlib
from base64 import b85decode
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

CATEGORIES = (
    *("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe"),
    *("Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn"),
)
"""The number of a category in the table is its place here."""

SPACES = (
    *((0x0009, 0x000D), (0x0020, 0x0020), (0x0085, 0x0085), (0x00A0, 0x00A0), (0x1680, 0x1680)),
    *((0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)),
)
"""White_Space."""

HAN = (
    *((0x2E80, 0x2E99), (0x2E9B, 0x2EF3), (0x2F00, 0x2FD5), (0x3005, 0x3005), (0x3007, 0x3007)),
    *((0x3021, 0x3029), (0x3038, 0x303B), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFA6D)),
    *((0xFA70, 0xFAD9), (0x16FE2, 0x16FE3), (0x16FF0, 0x16FF1), (0x20000, 0x2A6DF), (0x2A700, 0x2B739)),
    *((0x2B740, 0x2B81D), (0x2B820, 0x2CEA1), (0x2CEB0, 0x2EBE0), (0x2EBF0, 0x2EE5D), (0x2F800, 0x2FA1D)),
    *((0x30000, 0x3134A), (0x31350, 0x323AF)),
)
"""Script=Han."""

_RUNS = 4099
_PACKED = (
    "c-qxhTc{*Q89x7Cm#(hqo|)?Do^y82)|}b1m+WTGW=}S|*;Qk*C<z9|%Y%v{Uho25KpzA_UzRBP5=0SS6a+8$tRQN93gQJ(A%X@UM1n6qDB_a}iu"
    "(OkJ#%Kyp4>E%*fm|#RrU9OzxA<cn1p&5notFYd7}=)cF<DY44Y#(>q6V<Q8Vk>uJJ8}*6Xnk8_fnawDAHTT7FFZ@976W*YruX%VA_gwHp)_g^k#"
    "5V8WnuKjmniDY?!R8}z~-5L*QbRqQ6wR3@Ymb<`ow8aQKT!YpW|jSJdn+_TOo(;4k_CotFqxY5yRqq?A?ncyLf7;qp{)UA%QXtXjjW3{nHTTE8og"
    "_{Gp6`<9S<7gwmVmdHDKJnc|gR?`R00vylLzYf(#-k7#!Puh<6Zty=swdnZ0kYE`2l3Wn1z*N!qXTzc6v0-waD2d(V2Z(a*bRpW_IxerMJ+q|os}"
    "9o?0Pu`hMT$Wr3VMmin;+bftsP!b!LrDjKMfUAnGn)m=5TSjCxoP6G;dV1ciy%jsg|4r9?6~fE7emC&Q&Z>#XTg=tK&Nj?&Xj8V(-B1vpk<LQi!)"
    "gr}9lqLn*&OqNUcbb|_$q!=HO6yZRSKpn`Gm=+~L4_ypyNy_;s+J^sStM=F;UWX+VT%?fAB^8Jdok8k=$ECol!zGdc+D;>0Qrv6+Niaz#Vk#X;$u"
    "R#9VgI}(lhuFBZjqM6Y2c7sYWsi8v89bR=5?ITsxTVY@(Y_=vndu~5SmmC2VpvkGq0k@TFC@wo`?-$#cl&5=iH61+31!d<$TOY*<I67=gSQ$eHWY"
    "V)*&H~{`xh1$#?#y<AZ_yde|JSo36PTV0F+>E1cb}I#d4(!z8+JOyr<IqHxIu;i$xBpmr!e|Ef^sr=>s$9NDXp8J1gB?DCj~PU-SM_?6NsJeS5+s"
    "w<Taoe*i2u5?hDB=n4=Ah)PI4-^-i0#*h2A*`Qeu{Q+@*;DFP8C{}Ow9*DVcS9Xsw|(#PY$GX|sb5A2qLE&gsm69Driz0KEa^%TlN4u^XC$qlQ^q"
    ">TZXqh<Jd|b8W8O>oQ>up4_D=W3xF1RD@}5@Ktoa7DNN<SOoFIeks|m*T@pLYJWpuOVPi@r0x=U7$dV*#GJ_H}D28TmM4h8`!zF#&~6VZMoEVKCJ"
    "U2%RBLZ}0(lcq&CBM~?24!L(g8R<&#u<W#bwLw|JuheC(KT@MZ2^*k}q+FI>?Gsw0xD25@R2nx?@w)RGq-5cNI_T5~$)iv8by>TFG){aF`Y2e@hf"
    "Lq6Ur0EFWGesYgOuJtpQb1_>Bv-lC*j4i^0Em@mY7V6_g%7RU)9jd8K_glN+mo>QI|Kv5(GUK4C}<1GXH%QHhRqyLd-88*+EImlA0oI5Bi^sDdt0"
    ")izcis$9=VxmL(Xy)^G%!+98wRgI<BA{jh2ffX5|AT$Xs}L)YU8u%Yv7EJT~SG!Zpq@6Ejdh}j$yI`zMaLm`#S5%nQpX)i+VzH&6>?k!t(6&AJ!N"
    "ODLRnxyQdL{8pIVGLAdZj>?2R;mV2#w1~yMN9_n6tbx6-3y+N=-;5^I7Vo~8-waQ$|K!#Ii$CbokJX?mM;%9bas~7!Y*}zULpo}F68MGX;s?eGD$"
    "5X<KXa6Hf!Vq^{9!^Vw--1#0QEtu$t9S$%i17lio3XZ8+3^bh)Bc?c#c?>kZgSutBQH#LFD@e?6L|dSY%3)|c%~tEV6C2>dhoK8nXN7O9I&7kgGb"
    "%g^cW1VK4#7pETqev^tVa`c~F{50!l^19;mq*%+WxJSbMPb6YIDg8{DSneqLkFSCg%@xV}X}i(Y&=hzMA37id5}Gq5ra<LMV)bNXO@4>(+J6QN7="
    "8{6!t{J!XPE4{Y@Z8>ARgSd);zFcNFG2p3ql}4OYekQi7a3>dz=mh!F-$FG@zkBQHnD0%2ZQ{C&ME;CY~`cTV#n%d5*SdL3by^I&qc4Gkc;D9vw4"
    "J1-nYt&{zs1VjBe@X4~r?^mPVJ-xUJP*nrIn*cupNJda&rAw!8Fl*z8hG~z_F0849Rd1<apxZovWki$(D_;q%31zM`YvCtHOEreHAyhDLu3CD4Ec"
    "Dzyu780Dk5b1<u0`WaTlepr7Z36RHRm{TtInFr58PWe0!cCdEZqyd!BQAs~Id>KsqG}&o8XyiDIL!(B7G@wVp??Vq9B3q&k!a0&zvgI;PU#_DU^A"
    "doz#taWeEK{KLeYu0FgzGhAggQ27V%KP8KJ}Hf$}G!wjycq9PSgV)rek%`Q@z2R*k)VgGl>Fm@7zXQ?FFY6^){D0v(hMSGDN1x(quw;z3pcdkYRk"
    "6X4_|T`3Ijg75==N4!P6#)`Vw&mqB{p22Ktcaue{SCZsONa%?K5zNm+8sDkuVzPk|1;9qWEMc#?xPjo>6MKuUoId5?E6RAK{M<sHWX`j4PEk!s=i"
    "*yt@4lLLPhY1O;#EHX6r6=&9j^4h+;(o5Hl2f(B_G3O@h>rs*%<^BrOGidmiwIN#3ZG-j@W*XoY>$dwko?FQLRplYG9~FaJy7~auPQ=RY>aBa=>t"
    "XozRX?$`)&55<U1A?MMcporg2Kt@!KfXnyRheZ_Rp-Sg_{cSLb_yARUe4hcKogWK#Jtj9O_<4>ZO`(#=WJ;eJR+uL|S@7>?;t7hgC&dcigcY&NlL"
    "CEN3*j|IcL)t7QJFSleAJpG6mmyv+gg#laUgLUqMsKPfr`h;$)#mlbQcJ4MhI&Iz@^6-6ah~1^!}!ISlEypa=Z;1Tf7|F$e)O*EpZ^-sU!A&Ip0)"
    "fi>^%0|K3mZh`KQqhKj7KA&5{qj_upOa77aWVV$-)62bW&f<h85I>MNwckfb;SfkckItQ}t(vqP?IBu<d)jyv8Qpom8V-9<{3vPS%9DF>xDbk2$q"
    "N~v7Za_TXq0HaIdpPXvc7U&OB31G>+2yL6(<veM4hJNiy?l}b6uf4I_)OYF|;~SU$#QeT9MP-b{Zk+@Zun&asA0!m7^WE^W3f7d=Y{#jT-{Lq@-t"
    ">XSlHl6Vrzo{-Pu42;yL5qfRN|La-=gNmg)6{KQZq2z{g_euf-0}*0Jp56r3>^B)OF{Gw)H}nEi_}!7&9jnNIc$t_Ux-6=qY_lpLLf9$W5cvKlK0"
    "Va`hc9r`~N@x}D1V#V&hNM0gX<u*t=aEB8U#m?;!JGj#nLY%=CMq~sYb1wW#iQCXBlWbm<YbQ~fV<=v{7vYQy!6uK&2`{32P>bnZ?;ZV<@qA6M&n"
    "mT?AN$K{~Q;gMBd=rtI4z!szTA%5Pc2larl~JKvFA9g<FQi@zO2)>q!drF9NdF-D(VdilW!hIIYpqif7PYs72A!Q~l%?+7n`%77_hc_hLif@ku60"
    "()?m|ULvxMY}4#Et4vInw|ve`0AF9)>acttr$6WT~KM{2$=U^;hv&VQXQf^S)FYTn%kY^u})Z|lkVRi;CsZ;x*$%WLF3=?#lVXirH(d)H#&%gS*o"
    "{Ir#OoZit&|A6D$a)FX-oBUa!?xZhbbw@3<O#NWtzm3nbp|>TS&K)Hg?<b1q5IuLO56XNd2V)_eTT$7<EQ1;-c*4>EBAe1Ko8+jqr`OY{b2`-Yh2"
    "lLQBs2H{{j7Zl*WYl6(2@V*j`^{E<jTB4JMyFY5nb#^Ouq)<iS~#5ej%<zXz&W^%;XzNon-*hVzH^;{Yso%Ep&ZdC=Gb{w~Oxa@|^$u{W`JyRdj1"
    "nntSaYR-b6zZ)#PdtriphX8vbT_?CLr9lTk7_@2Lzzm4xfY+3Y1#azF%dzqq-wpClbu{`!En$2bfHM3dj+F5kzbn3(gvzhpV!=pS%YEXrMudd^Kj"
    "E<2#Y67-PH}q9~$)Rqs85tTq<~+65{tEa4Cyz7to}dq1P({HK8jtdv!k$L9drWPU_K(w?#lxQfRq?tJ{SbX;ac*}PYpC(F_9c>9Uv+^--v_{U{~_"
    "yhCbG+fq*kBc2Os33LQOeTf`OAzxXhpCJ^e0pDI-ui?dvbowOH@zvf!cp0{xxLuZ<3>Rv*!CvlZf~(%0Z7XWg9fm2vMcxf*h<yt!74@J&`0pCfvU"
    "|D=23=e+pd!v2={p$o%rzIgN}{gug=^zQ~gJ!76&{NlUkY5w*b^k@3aKh!_}rC9EN1FKI@(*"
)


@lru_cache(maxsize=1)
def category_table() -> npt.NDArray[np.uint8]:
    """The category of each code point as a place in :data:`CATEGORIES`: uint8[0x110000], read-only."""
    table = unpack_runs(_PACKED, _RUNS)
    table.flags.writeable = False
    return table


def unpack_runs(text: str, count: int) -> npt.NDArray[np.uint8]:
    """A table that is packed as ``count`` runs of equal values: uint8[n]."""
    data = np.frombuffer(zlib.decompress(b85decode(text)), dtype=np.uint8)
    values, packed = data[:count], data[count:]
    last = packed < 0x80
    first = np.flatnonzero(np.concatenate(([True], last[:-1])))
    place = np.arange(len(packed)) - np.repeat(first, np.diff(np.append(first, len(packed))))
    lengths = np.add.reduceat((packed & 0x7F).astype(np.int64) << (7 * place), first)
    return np.repeat(values, lengths)


def spans_by_value(table: npt.NDArray[Any]) -> dict[int, tuple[tuple[int, int], ...]]:
    """The ranges of code points of each value in a table with one for every code point, both ends included."""
    ends = np.append(np.flatnonzero(table[:-1] != table[1:]), len(table) - 1)
    firsts = np.append(0, ends[:-1] + 1)
    spans: dict[int, list[tuple[int, int]]] = {}
    for first, last, value in zip(firsts.tolist(), ends.tolist(), table[firsts].tolist(), strict=True):
        spans.setdefault(value, []).append((first, last))
    return {value: tuple(found) for value, found in spans.items()}


def members_of_ranges(ranges: tuple[tuple[int, int], ...]) -> npt.NDArray[np.bool_]:
    """bool[0x110000]: the code points in some ranges, both ends included."""
    members = np.zeros(0x110000, dtype=np.bool_)
    for first, last in ranges:
        members[first : last + 1] = True
    return members
