// A queue.
'use strict';
class Queue extends Base {
  constructor(limit = 10, { name, ...rest } = {}) {
    super(limit, ...rest);
    this.items = [];
  }
  static of(...items) { return new Queue(items.length).fill(items); }
  get size() { return this.items.length; }
  set size(value) { this.items.length = value; }
  push(item) {
    if (this.items.length >= this.limit) throw new Error(`full: ${this.name} has ${this.size} of ${ `${1}` }`);
    this.items.push(item);
    return this;
  }
}
const fs = require("fs"), path = require('path');
let total = 0, i;
for (let i = 0; i < 10; i++) { if (i % 2 === 0) continue; total += i; }
for (const [key, value] of Object.entries({ a: 1, 'b-c': [1, 2, 3], ...other, [key + 1]: x => x * 2, f() { return 1; } })) {
  console.log(key, value?.length ?? 0);
}
while (i-- > 0) { --total; break; }
do { total = total ** 2; } while (!(total > 1e6) && typeof total !== "undefined");
const add = (a, b) => a + b, g = async_ => ({ x: async_ }), h = () => { return; };
module.exports = { add, g, h };
function fib(n) {
  switch (n) {
    case 0: return 0;
    case 1: { return 1; }
    default:
      return fib(n - 1) + fib(n - 2);
  }
}
try { fib(-1); } catch (e) { console.error(e.message); } finally { done(); }
var x = a ? b : c, y = a - -b, z = a / 2 / +b;
if (("a" in obj) && !("b" in obj)) { delete obj.a; } else if (x instanceof Foo) obj['b'] = null; else { x = void 0; }
document.querySelector('#a').addEventListener("click", function (event) { event.preventDefault(); }, false);
const text = list.map((x) => x.y).filter(Boolean).reduce((a, { b }) => a + b, 0).toFixed(2);
(function () { let a = 0x1F, b = .5; }());
