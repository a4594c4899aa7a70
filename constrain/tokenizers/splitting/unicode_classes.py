"""The classes of characters that split patterns tell apart, for every code point.

From the Unicode Character Database, version 16.0 (general category and White_Space), which is what
the reference tokenizers use.  Python's own ``unicodedata`` is another version in each Python, and a
tokenizer must not split a text differently because of that.

The table is stored as runs of equal class, packed as in :mod:`constrain.unicode_categories`.
Unicode data is Copyright Unicode, Inc., under the Unicode License v3.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from constrain.unicode_categories import unpack_runs

OTHER, UPPER, LOWER, TITLE, MODIFIER, OTHER_LETTER, MARK, NUMBER, SPACE, PUNCTUATION, SYMBOL = range(11)
"""``\\p{Lu} \\p{Ll} \\p{Lt} \\p{Lm} \\p{Lo} \\p{M} \\p{N}``, White_Space, ``\\p{P} \\p{S}``; OTHER is all the rest."""

_RUNS = 3573
_PACKED = (
    "c-qxiONgXb75>k;?_2+0)m>fvnCj{3>YkZSce*>>^U6##CPQQbAt7dCLPQiX3O>Lr1VJ|vg4qO7f}03}8eB&ZC0Pa0h^R0N4X$Kxqo9PWVitma"
    "=iI;gG3iMrkC9ln>VMq--h0kH=R4mye^s%HDWe7aNUm58Rom@wnS=BNhar@SGt&pWIr$oHzi;2n`z@bso-{8V7G|p~C#o{xfX4cJ%a(6cT#@lX"
    "Z`id>oT^;;)V9i14jqCspQ_}n^C3C!@T;=7K6@7&AXuT#%b^O++nj9WGcL4M@>C8LMpoXT$Gf%xu-2)Ry(SCEh)TOX76iIo^3~yC@_f?dF34)t"
    "kxRAfAWodW&WOpF?1G4XbDIp3G5aG9P1gmggf)D+z68~wjBYn7YK0>Fkam-K(5SU<hV5XngNlh2ake^6EUd1A#k{nn59K5ap+{XQv($?RTJTv>"
    "UvaX0lmQMIBSBV{!GJ_gE(!or&<#3Ow%q`3EEr03gJqxt=GlF%%N}#3Q;QcX8J&t{bdpU~!Am9l=d<j^g?5nW5gb6P;H6ZyT9#)k?f)Y1Zdy3+"
    "ovY$py=9{f4^2j@C}$iiq>WsadnA`MNjtF$7T`=4KL9O@%aCPqOMwTP6058tDJTcxPymM`7QpnNcWKgh1b^E9g=JJOkRgy_*|9`WIx6rLzru*x"
    "U=Qmg3+I3bIatZP7=+&Bk}Xq&tuWS=Etdx3!&8j4Nxp#lJ4{zX#&2mFi=aT{Wt-nmL)mNZbDO;1DH7Gn?QMmPIFL*msaYx2C1uJa^qVBT1YuE$"
    "@=A%_1_^lUCL~k17FNxNcuXyfiS{6oat09q*<!`Ql9LDGc`sRMuZbplj|)k8lJx|vN}Fg$6k?)<-Cv?$<uHtr5Ssv@JZ<Sw$V>Pu6vC9Gf&Ifc"
    "7)=UFbhd$8aWz3|X;#}IA(AOwyFpnsInBCq874`!CEXxTkOPFrH8&RdLBC1Y5Rsu!H?~I-3M_G~QPHM0^@dEAo=~;E3hD{H)CwY~Yc=Cknj7W0"
    "R2M;9T@)@kYHu^C<jU)%b6>dwX}4t7w#m|!76M+%;Yw4WV5&{MspKfR)kK&yH)&#5$3toG)-?;evaj~ur51t;C_OnfVC4=DQh**T4%($A5NtgX"
    "RAvFM=oi#vxtge`#;EqJ<6Hlh=fxKuyp(dg5kLb$AUFz>i5^f%cHdra#?Bsig+qdJyq~b1M5tC1daY9ASaOM$$$QzQn#B18wEGXQA%v`X;)nx4"
    "S85l@^{NJP3Rc~(_H2QGt+WVHR|Mr&F^zYv(Iy3jhgv!|6+V_@<=%74hg!(hyKdpgYBRY$8S-Q^QuWXf(GWj$;3WKu56HP(7@DWBK#|_vhu`M@"
    "My4CqE2H__=-XQROuwQ(<I30@RbtX(=v{vTtIR!-muazY>#hs9o_>5^j47s69ch}<31V|Sv98SFv%5E<!2942rknj)WAYo!hPG841ja>cd0L#v"
    "9oS_|c@`OzKC3(Ou&L#Yr(FykE%Kus>gJUscEpT1i`QpEj(c=WK+$mv<YU^P1zNe?P@h6()L+yy6q$KWmNa7iz@kGGR~U?7_6jM)fGxw6IM9dE"
    "LHrZoSF8m`Wuqd?7$^GU4zhc!k^+KeUsxHT!h&gKVN+RR3#-}!WYovT)YeH4%tPHKIu|w2rer#<Y$*Rqh>)PWpfVsA31x`a5mGhPR+QY}@&u5>"
    "79e~^wd<P&>;a68M;;194+BuWiyn&s5!85!6@CjiV!0$$m`KTN$7FgEfqqaNYB|zLJHUtzoy1(P<<_aq0cG#4729CzO^t;tuPL2uV*YQ%uR-T;"
    ";J31O*P}ad{3x3=FjLt-ESvf#b}&stHuoD7L*J$u!>P}8BPgiPjZFzBVeyW*$e*C|!SO1j-J6$TjM_qtJc5o}c8D>n^N#s^rX{2SOoG#R`Lx@a"
    "j#vb54at~M!+EP4?a6_0*_b@?umZVFHZdBS6*~b9ZtL!bR!?1`58@}?d<oIRJrN&0Pr765YG;g2Ua{b9BWDDF9HRr?%c~c{6~G!$Lp4pofgTW-"
    "SZ~ZqZ>0x>D9MX&jq@$s<ZA`yjx27@!YORuV7tWsp}EfNoe$3a-F8Q(c{x90=I*v*ew}$tU)bGk(?(eXVaDd>yMTS0RUA|<;J*l%cWFLJ6d!Ek"
    "9U61JI;2PIS7<m@Qc>oblE)59x_DUPpXd`pd7Jbpc|#hnC7N2MJc`sC=UaL&@k?hfeeXG<e?@a4t$ThNCY;JVc!!!>%5SqZzBjXv^XYKTc&|o{"
    "*Q6nS%Y|K=A`j}_rj-Mq*<!syh4XNQ@z$TSk<auaNTctKJkG}>&o>=fGIpoiC|zN3ROz(QO-kutzbWuGnKObV7UHD^2<tfE-7GQS)vucb`epmj"
    "iKzY0JyOrx(@);>D)SfDLhYQ8YNM))s$ZU-`UmsWCB7Xfs4Ylu>I5KCI1TSYPYHX!sWuClwt3m8P~;DYZ5U`7(hNy5>aKpn8M|%L9n%0$V`yia"
    "p1|Ht_h`|MZ5qJRZq2z7fxU5g>-zeGQ1zreY1iYq4t1!f`KvvfbM-Gc&E>e@=~haYC0%X_1M)n4HqT)>rd>#OZVm<-I=XZb(LTku2}3&sssY!c"
    "9>Y6Q0O>B7airrce{bAw!W_pL7yH51;i3C3oNdkq=n+B8aORwWndTy2p=AgbJ5QMlb}3Vw>sU9}w{~qd4Ca$L-wSpmDLdKij!;K)45hs}*@Yu9"
    "FQU$(WOln2%19E1MuSeDj@9y?-Cde{u+>a{r^c(eJ($7;JCedBH#;PbU|c6FG}n}6wd`xX8F}e^-?}W=Fr(dp6bShzv=cbZTVCCrHq^<!nb~Zl"
    "4)BBHi`=s{vhxeH)uYG8<C!|jGFS_yW~EQ$!hCP!TY{!YTBN)l2u_RCxorwm(A*dD&uImPkxz6=`dwZ!Jc9n+`(y`e1>r$-@v`5s(|utY&mi$a"
    "Nu)7stI70n>dh`S^lbS2SIBjKMZX_>hMVUjfZxmCUv|H-FPtCs^UKW(HY`hwd<+>BiIwth5I<ASkTdIMo;PNlO@5ii<9YkJ`|;#Lu+1g0ONYB}"
    "?8H~nM*iDnt0w+2(*BYZc{V<6p6q|gH6{i9%kS#wH3;~bdEhplPhY+Bb;`H!ozD0eIgIQ_X74fd^+7$TA4$iaqTz5Ds6QNP`Ojj!Xti$X42P_h"
    "N+7uqXCY#S2R_I77#$;j)B&rV`KG;K&qPEeyPl)om6&PZ{hzSjG%H5jT`TnXwh4g+wJ-6ArnfA(<BC~C<i0{9793uMR6%2pevPUsY^<*09!C7G"
    "|FDqL1KZU5B?c_EuQIv3PWZ`Ng(1F{99ax#bwH+R2Q<+1IsP_p*~jW0tlFbfx%nYoTxz!Pn$BJSEd4pyY15dm*-v}aMZMZy1S;0!h-=Gt{gLY~"
    "HzvD_p~oH2*)v3+%-@Pv|G?uH$Nn$GPi%L8`k~&d_D3^6uz&6RZp~dCUwLu!HTurKJO2f^_S6v"
)


@lru_cache(maxsize=1)
def class_table() -> npt.NDArray[np.uint8]:
    """The class of each code point: uint8[0x110000]."""
    return unpack_runs(_PACKED, _RUNS)
