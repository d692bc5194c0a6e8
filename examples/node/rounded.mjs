// JSON has all digits of an ID, and numbers of JavaScript do not.
console.log(JSON.parse('{"id": 2123943899640725505}').id); // 2123943899640725500

try {
  JSON.stringify({ id: 2123943899640725505n });
} catch (error) {
  console.log(error.message); // Do not know how to serialize a BigInt
}
