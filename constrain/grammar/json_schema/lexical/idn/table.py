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
"""Of each kind of code point, from 1; kind 0 is what no label may hold."""

PACKED = (
    "c-q}qy^mc-6+d&%+<Rx{y?ft#cfB9kb-e3c`}t#c?aey=2$iD+OI9QzQRIUzH4>tNf&ycKC`kSR8VVvB3Pb^DyCCsV08%J|M1x2ZBt%I;ncq1x"
    "@9oCktRe*)LUG=mJ9p;H`JVH8blW+)#4F@DfZP)&u_vD}cSQUI&*zVMXOn};&&Og<erzotTR)o@JR3@<p3R>?zI?ts1wTAaP0=^Y=^y+421N+i"
    "kar1dR$ZQ-$X#NA%o54T208CCRrx7isK;~7Z&8?idz4O#7ku|1_DnZ;??0ofR8Q5${HbE%f19p=YQALSQ16nfF<)~b%r$G|o0`^SKvi(jB_CXJ"
    "Mis^_xzJ$DvN%ZO@pMTdd>%%r4^#b;;(P}ua7|7St5Qc6yopadOhF<CM`L_*K~fbwR>!g{?{u<8_zi<3;LWxIp^ViW>Nu4FPVHg}=Osp_1~JWX"
    "Nqls8cL;Bdn%<;l<Ctu}h(K286|gdMq$({$(K*u9j_`uj5{m|*#&ZOIE1EH_<6Gid$jz=539av3i->`afmK811nZ8mhOJ6#hB7Z%#^&njH3Mxo"
    "Mpy;v%pa|r^BCspq*@8L>bn{_{!vb|{MUR|Zm34OSHKPV?Tka@gfgjbgTe=SZ}o4+N2RRh5>+_U)~QT(!f38lgqF3+bfRX*`8c!CG40?V<=U{!"
    "Ed=jNj>_7qw}V||o?&cbofp``w``|ME2?RctOmypywujv&~8NKv#j>dl8Ce(5{pun!qyba6<Nl7q|*_HbX=d2Yhjs@tx{Q(7sj>8d*pSd7JBmB"
    "##cHnes(j-adO4-5nCiavT6@~SBjTZ#)edG--_v=ehD}=nPpqv%NCTnQ?88!ll#)#ijdj3={Oy&m8^eNs%vdhXmo9Gj+&vcoidOdgG%s0@zUco"
    "G=070Hzbj&&AZg|dRk?1<4>TWc_(7^3%m`>dhCQ>JLrdf14vQZ$irB$A9JgA^W3VvVCy>jhm%GC?en(X?hlynn`m58C6BL^=lK)9jqrS-j1S;;"
    "ficDijaO*E|J2C|KCZ&bFF~dN@AazPSTk%v7|(&u(2(2gdmBFwKcO<T!K96yT1E10t(grAPeJwMb?~c%C!69X>dAZX!a7;>LPsg_Uqh(Gm(6nn"
    "-T{|Y^U{=;HR{wye6!>pRO@mcGHO&U$s#$~`c`X=bl^Xx=hWhS-S(K*+DgY`%>}{Q3HpSg<}RPpj8>bEokh?c+rw&iJY}r<UVx@S*PxCi?0=5F"
    "WO3W7MDQVU9i%p4%Y&(}O8+zf^`Nt6zfHP`KIOB1*FHU}=6&F2oP0pnSyQs-qvMb1MnN~wZEDv!0!4JNC=ghW$n%~$%q=>mcQoW~f_}1C`ciqs"
    "W`5q|)l~go#0C1IJk~7Ky3SL|H;`7JJG9*CT^Fqoo<hJ0*MT42lOCIUN1G_!of@ovh3xX{mA>rst6m)2^flg~y?#s&eE-f3y4yc^+wohG4)_|*"
    "eM>L)v$Xi+)YejnlIPr~00D>&lwoLh(Zy5Xhy0ga98QBR?oj~$$)&9dowjBMI_nd@oweo=7awcWqosej&8;jNW?Go+FIYgLsn~DFb}=Tso}{;S"
    "uy~QDqHX4~4D?E(9bAa{vf_LdwR-V()+XTE;%Btwk~)8Z=OSBMs27x7wl#uXX6-5O=LS*RH@$q>T6$Ws_HbZVn`(d)J7+B#7dlFpZCI%CYSmYH"
    "E4Qe*jk7)Z#J69ie|#QUp?Ra(k?fhr=osi<in_jC<0?J?0C`iams$la6t|7QsH08(COy=+e(3mFyIDtgSx1_+e8$3{hOsILbPnq;z%_wh<FA_#"
    "*X;c=?&Rlz$p^-B*0Ue*FV#*<&@e!EN8gIjQlU`X0U=YP0;^?8pcvQb#kgSeDPm7trF-!X0ou{snA>c?DS$Avb`fv!S?i?K;~N+YXiFiMLMs46"
    "j(o-`_&a033(yXnlk#{b-YO?7P+LHu=ywH%1_PDDSL1#9M!Z2S_Mg{z)Ft3W`Yp$+CJIm{eG!KyC=qP?1Y!<o9cYrn5X-L`7Gy<x##Y&L89Q22"
    "rAxTnl&({Yr_MTl#a5kRCEnEzUr~-Y!=Wt#v9VwlzF=Kd-LZA%NEpS6@WhtngpI~w4;-R(T^@x?(Sio!z!GT-m;j-z2tdPYta_n~q8E>~ui2vs"
    "r(QQK)EFL63HTJOW?h(t>>R0$kB}8YTj$V8Dk}Uw3}A4Vv(lo+>JggRLg!3{+DxS_tG0-<s-vyokCC<o@6JEdGAm-(w5`G9aPtm%V14bj%zD^*"
    "oYPb7dW+XItO{Dt;PRGg4IMh($)+?$-*tQy*GwpQFBHvJ+FDT@m0s5HgPnu>G0{C+e<@1~S$$VZ8f>zr2zaF4zpNP0dS?r|PStc)dW5f8zpEuc"
    "tgF3G-^-BjVs6aUPK(Z<bwbV|VP(l&-n7}aO!wz*ngTjW22=V+SZ8(0Y+5U9v^5)TmA}u7SPb<GR%`-I4|V2c{y{?@IR3SxKb+w=aQaUJ{b`+l"
    "=jrf(4?VW5Q^p7{m#2!RSYr=jM>u?F{{k$+@eA~Bh2rzT0S|e@V7C$bz-4rot=Q>54oi&U{O{|K_Ro>7!UTW+LXTkW8>@b<{}IzJO5g;Of!`GR"
    "PS0Nf?-q88rhp>k_b&*V23e-VMY)Z$_JLhc^g&DZZ^ek-4G{eOY}$!MY%vzShvWp4#{Mj|^rK%fpTph>?}$dt2f3R2d9iizH~L>mLobC*X_gUN"
    "5#hVr|Lu=}$Nk|3HT_=^O#Q=M>iVC3j(&K#|NWGH{+HVy0*Hf`0R"
)
"""Base 85 of zlib of runs from U+0080 on: a kind and a length (7 bits a byte, lowest first; high bit: more)."""
