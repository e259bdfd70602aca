"""How a report looks: one style sheet, light and dark as the reader's system is, from a phone's width up.

Colours of lines are of the palette of Okabe and Ito, which people who see fewer colours tell apart too.
"""

from typing import Final

STYLE: Final = """
:root{color-scheme:light dark;--paper:#fbfaf7;--card:#fff;--ink:#1d2125;--soft:#5c6670;--rule:#e2e0d9;
--good:#00704f;--bad:#b3261e;--c0:#0068a8;--c1:#d55e00;--c2:#00805c;--c3:#b0558b;--c4:#8a6d00;--c5:#4b5a66;
--bar:#ecebe5}
@media(prefers-color-scheme:dark){:root{--paper:#14171a;--card:#1c2024;--ink:#e8e6e1;--soft:#9ca6af;--rule:#32383e;
--good:#4fd1a5;--bad:#ff8a80;--c0:#56b4e9;--c1:#f0914a;--c2:#35c79a;--c3:#e29ac4;--c4:#e6c229;--c5:#a9b6c0;
--bar:#2a3036}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1080px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em}
h2{font-size:1.2rem;margin:44px 0 4px;padding-top:14px;border-top:1px solid var(--rule)}
p{margin:6px 0 12px;max-width:46rem}
bdi,code{overflow-wrap:anywhere}code{font:.9em ui-monospace,Menlo,Consolas,monospace}
.soft,.unit,.axis{color:var(--soft)}.read{margin:2px 0;max-width:none}.axis{font-size:.8rem;margin:4px 0 0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:20px 0}
.tile{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:12px 14px}
.tile b{display:block;font-size:1.5rem;line-height:1.25;font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:.85rem;line-height:1.3;display:block}
.tile.bad b{color:var(--bad)}.tile.good b{color:var(--good)}
.found{list-style:none;margin:0;padding:0}
.found li{margin:0 0 6px;padding-left:1.6rem;position:relative;max-width:52rem}
.found li::before{position:absolute;left:.1rem;font-weight:700}
.found .bad::before{content:"!";color:var(--bad);left:.35rem}
.found .good::before{content:"\\2713";color:var(--good)}
.found .note::before{content:"\\2022";color:var(--soft);left:.35rem}
.plot,.panel{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:14px 16px;margin:14px 0}
.plot .frame{display:flex;height:220px;margin-top:16px}
.ys{position:relative;width:3.8rem;flex:none;font-size:.78rem;color:var(--soft);font-variant-numeric:tabular-nums}
.ys span{position:absolute;right:.6rem;transform:translateY(50%);white-space:nowrap}
.area{flex:1;min-width:0}.area svg{width:100%;height:100%;display:block;overflow:visible}
.xs{position:relative;height:1.5rem;margin-left:3.8rem;font-size:.78rem;color:var(--soft)}
.xs span,.ticks span{position:absolute;top:.25rem;transform:translateX(-50%);white-space:nowrap}
.xs .from,.ticks .from{transform:none}.xs .to{transform:translateX(-100%)}
.grid{stroke:var(--rule);stroke-width:1;vector-effect:non-scaling-stroke}
.line{fill:none;stroke-width:2;stroke:var(--k);vector-effect:non-scaling-stroke;stroke-linejoin:round;
stroke-linecap:round}
.fill{fill:var(--k);opacity:.13}
.c0{--k:var(--c0)}.c1{--k:var(--c1)}.c2{--k:var(--c2)}.c3{--k:var(--c3)}.c4{--k:var(--c4)}.c5{--k:var(--c5)}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 16px;margin:6px 0 0;padding:0;font-size:.85rem}
.legend li{display:flex;align-items:center;gap:7px;min-width:0}
.key{width:14px;height:4px;border-radius:2px;background:var(--k);flex:none}
.row{display:grid;grid-template-columns:minmax(7rem,13rem) 1fr;gap:4px 14px;align-items:center;margin:12px 0}
.label{font-size:.9rem;line-height:1.3;min-width:0}
.tracks{position:relative;min-width:0}
.track{display:flex;align-items:center;height:15px}
.rail{flex:1;min-width:0;position:relative;height:9px;margin-right:6.6rem}
.track .rail{margin-right:0}.track .value{width:6.6rem;flex:none;padding-left:8px}
.rail.over{position:absolute;left:0;right:0;top:-3px;bottom:-3px;height:auto}
.bar{display:block;height:9px;min-width:1px;background:var(--k);border-radius:0 3px 3px 0}
.value,.said{font-size:.78rem;color:var(--soft);white-space:nowrap;font-variant-numeric:tabular-nums}
.said{white-space:normal}
.mark{position:absolute;top:0;bottom:0;width:0;border-left:2px dashed var(--ink);opacity:.65}
.ticks{height:1.4rem;border-top:1px solid var(--rule);font-size:.78rem;color:var(--soft)}
.range{height:18px;margin-right:1.2rem;border-bottom:1px solid var(--rule)}
.ink{color:var(--k);font-weight:600}.said+.range{margin-top:1px}.range+.said{margin-top:9px}
.rail.ticks{margin-right:6.6rem}.wide .rail.ticks{margin-right:1.2rem}
.span{position:absolute;top:8px;height:3px;background:var(--k);opacity:.35;border-radius:2px}
.m50,.m90,.m99,.m999,.most{position:absolute;top:9.5px;transform:translate(-50%,-50%)}
.m50{width:13px;height:13px;border-radius:50%;background:var(--k)}
.m90{width:9px;height:9px;border-radius:50%;background:var(--k)}
.m99{width:3px;height:15px;background:var(--k)}
.m999{width:3px;height:9px;background:var(--k)}
.most{width:9px;height:9px;border:2px solid var(--k);background:var(--card);
transform:translate(-50%,-50%) rotate(45deg)}
.shape{position:static;transform:none;flex:none}.most.shape{transform:rotate(45deg)}
.strip{position:relative;height:16px;border-radius:4px;background:var(--c0);overflow:hidden}
.hole{position:absolute;top:0;bottom:0;min-width:3px;background:var(--bad);border:solid var(--card);
border-width:0 1px}
.scroll{overflow-x:auto;border:1px solid var(--rule);border-radius:10px;background:var(--card);margin:14px 0 4px}
table{border-collapse:collapse;width:100%;font-size:.85rem}
th,td{padding:7px 12px;text-align:left;border-bottom:1px solid var(--rule);vertical-align:top}
tr:last-child td{border-bottom:0}
th{font-weight:600;color:var(--soft);vertical-align:bottom;line-height:1.25}
td{max-width:22rem}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}td.n{white-space:nowrap}
td bdi{display:inline-block;min-width:6rem}
td.hot{color:var(--bad);font-weight:600}
.empty{background:var(--card);border:1px dashed var(--rule);border-radius:10px;padding:14px 16px;color:var(--soft);
margin:14px 0}
details{margin:10px 0}summary{cursor:pointer}
dl{margin:8px 0;max-width:52rem}dt{font-weight:600;margin-top:8px}dd{margin:0;color:var(--soft)}
@media(max-width:640px){main{padding:18px 12px 40px}h1{font-size:1.4rem}.row{grid-template-columns:1fr}
.odd{display:none}
.tiles{grid-template-columns:1fr 1fr}.plot,.panel{padding:12px}.plot .frame{height:180px}
.rail.ticks{margin-right:5.4rem}
.rail{margin-right:5.4rem}.range{margin-right:1.2rem}.track .value{width:5.4rem}
th,td{padding:6px 9px}.row>.label:empty{display:none}
.xs,.ys{font-size:.72rem}
.ys{width:3.1rem}.xs{margin-left:3.1rem}}
@media print{body{background:#fff}.plot,.panel,.scroll{break-inside:avoid}}
"""
