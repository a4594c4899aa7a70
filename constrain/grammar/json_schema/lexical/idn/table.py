"""What code points a label of an internationalized name may hold, and what is known of each.

From the Unicode Character Database, version 14.0.0, by ``tools/idna_table.py``.
Unicode data is Copyright Unicode, Inc., under the Unicode License v3.
"""

TRAITS = (
    # Bidi: L, R or AL, AN, EN, NSM, other; joining type: none, D, L, R, T; script: other, Greek, Hebrew, kana or Han;
    # whether it is a mark; whether it is a virama.
    (5, 0, 0, 0, 0),
    (0, 0, 0, 0, 0),
    (4, 4, 0, 1, 0),
    (0, 0, 1, 0, 0),
    (5, 0, 1, 0, 0),
    (4, 4, 2, 1, 0),
    (1, 0, 2, 0, 0),
    (1, 1, 0, 0, 0),
    (1, 0, 0, 0, 0),
    (1, 3, 0, 0, 0),
    (2, 0, 0, 0, 0),
    (3, 0, 0, 0, 0),
    (0, 0, 0, 1, 0),
    (4, 4, 0, 1, 1),
    (0, 4, 0, 1, 0),
    (0, 0, 0, 1, 1),
    (0, 1, 0, 0, 0),
    (0, 0, 3, 0, 0),
    (0, 2, 0, 0, 0),
    (1, 2, 0, 0, 0),
    (0, 4, 0, 1, 1),
    (0, 0, 3, 1, 0),
    (1, 4, 0, 0, 0),
)
"""Of each kind of code point, from 1; kind 0 is what no label may hold, and ASCII."""

RUNS = 2990
PACKED = (
    "c-rk(y>A^^6`ym?y)$?2do%CDv7cin_KWSjd^nCBd-JhWUIijWkywdh7wEP|LR3&t5F!u-yZ-<U1*>f+5CyE<EfOCEAT7lr(IB>2Bt%I;$?u#y@5"
    "3)o$tKwqti&9@J9F=xd%o}Qj5Esk|MVD9`oohn<UroWc{;sw(b{5?&rm$_2^Ap8LK#D%3_odQL1LMOIHfEiY9)TL9m;^&>`TdJCZUuvD+30}@Mx6"
    "Huwr{@0&$0m43f(6#!M=fO1P4$##6=?RH;q}8n3e|t7^uWI5efzWBI5o)pg2@@MAnCNK}$Bq+tP1qt0G6>J|mHQc+2m%1}QhLhx#8$|AR*r&DG4t"
    "H4!Fcr+k-uctoq)QVXFb#k{#+Myb9c&;XGRp!f8CdZ<ByrwlE$#Rx#o-8)Vl#0XvA3*A?<xow2u7e|W7ejZNTZ=8ImT6#mc<4#53514TPV2L&E!J"
    "swCbLc@D?#0H{TOq%mhqczvwi$t9n^Bb+<jIL{wGW>`}p)<?o6{;suvX@Wqs~jGIi`{eZrJ&3VKeR@)Wm)pUU!r^uodg;A1EVi0LiiC~{@zP<RZh"
    "I56GmiRv~;lcvVe;8Z1s4h=Oc80xvA;s#h6U``2`P_BJtA%w`HTrZ~bNn`+#o&g?q*B*tAbtZ;0+N#PZ4fClUsSEmEvX<?gut20OqxYfhS+CPxTV"
    "@uLI<pXGb;6)p#{OssEd*8LRAT6+=Ejq#N>{RZ?5pP+MAOT(i*!?ys3ss@H_b}Mq1UB}{45#86Tp{=7FEp?43>IgQhmxE)e2~x=?T_($K9+0Pt|#"
    "iw)Ow1sD^WS+S8{v-?X86n(r!c)V$!cVXj_eJ~XMI`;x6RYqLc+*Ah>6!PC#v8kE_3L-J*S`>fP=i7u^Dpl7~>h$l~W@iXn`nLCrP(^0rt=jKmkv"
    "rrKiZ=P9k6FZ*cDxeoK-FW^+$%Tu&hR5D9tSD(X@mu<|z8#(r7kI))2OmSLe?E)($&vVkuPc;aA_{w^3);fE%hy}J36^&i6~xQYX|7zSKO!#8F4m"
    "~#xH*nUYZsC6j>^X9b*7edkThhM^HGcHcmXjdUQr$)-zN_VQRD5BF7`_rFHgWNEk4evL#s&4Eem_l0xAMCM<`>`rxn;n0@HM0H7VG7J2n>Pu3^&r"
    "D;p~x^hYWq>aK+~HAi{aEE1mzlc}SsO3G<QS>nN!)S;{jQG?Wd$^{V;t9QVQNE?RX4)F{rb?o9P;5VSISxow>(6gb&G2W{tV~C9&-y}sNP3AiAjn"
    "(2SJeHtkW>!QqwJ)oh1uoPW4QR+CbEWl~lP?0rOKg%?$>NVyi1zxx$np?tZO&t>aZ}5EOzjkF@0$bc^V2U&dU+Qq&(+daj@odr4~C$IG@DQ-bhyj"
    "%knclsVe+rwcVRN?(90O_vJAW3*INH{+@m%BAP+@f6Sah*>T|o&h_+wSYOrEd6N%#}=3gm1Z^6KOaZ^oIYjcU0*|)B_wLFdnTCO)053EWxG8FSzQ"
    "K+eV!_mG)T;0Pzr@gYxw4s>>>m7qBc+=hqC<avMjV}q|Y`7FZ@*@vJTGXd=6>VKSrvJsuGk^L@0>T=?cs%v$2-VS{5^W$LX*DhLdrUX!r^^Q#+Qg"
    "%|q}+e{c3R0Hr|prZobL>1P!@EWhWqq^o}n!m>t54S%3sCKeD@o}gYHB3-qG>Hx9P3&?sa~P<=pbKp}dPv;oy6bFP1Xbm0v75b3LW$@(aa!n$LnW"
    "xENpOa1QM7*|DOfL&TB~fnq?Ser}RSfd@d6Yl5Sdpto)zw`b`}uCXi?5OH+#ff;b9RltUPtHLdX5v<1?;Fnu!b^$%|`Zgy})QxYy{*TY6#}qO77t"
    "wd~?p=CQ+O$SXhU4|tw;wS*qVsa2Lz~0u3@~xz{RZ#2@a1oEyuRZuhnJ38s7*lp-FLZMiD8w#1I(psdhU4;2j%7~kQP_s+PynDA1elVrwDu=I77q"
    "pa(>%4jS+p&8|w4fTiCEv*=I%b&GYs9-#V)30)iRhZ~3bBiZ7mz037O3YtwPtT}@cSoOY}aw5i^#X*23tiKRWm;ex8OMa*T#1G*_{e+=6gN~Qx~F"
    "*&FCLio4)bXGsTP`LDp0WCa@#Xd<vK57r2>2DU>)ZVmhd0<8%{)co^f*IsIG|9$+<O<lSnnHYs_F<FF2adN6l-cU46-T>dnqhFfwa)q_2#R@eg1S"
    ")GzE4+|RW{I^R`b-T?P|w+fiG!mPakgU@RKiF89Fq2%;dVomiqU9fKG4`9;lv9T-|^><`3W3ag@r@o2|Jb_Ru#)1gn0@OUx%kul}g`h<;6fIP*s5"
    "XW>tqzjG&dPh7Ey3Vap64YZMiqIB(8F8ihT{qP|@fF-vJR~@UM7T5pY4}UJNmVf_(Gu=PoJ?XjdrhKpeHD5_t;6v%do$EX}S-$NK1J$(Rsq=o={1"
    "EItw(x&|<Q4@wG5v}+sCUi9k5KxW+YbGPTE&Ac%;GzHfBPd3Plm-`i68CNKmXj1FaLh@i@)6d4}-^-f&"
)
"""The kind of every code point, in runs as in :mod:`constrain.unicode_categories`."""
