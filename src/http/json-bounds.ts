/** Limits of a JSON text. */
export interface JsonBounds {
  depth: number;
  /** Values in all, keys of objects included: each becomes an object, however few bytes it has. */
  values: number;
  /** Bytes outside of strings: of signs, numbers and white space. */
  bare: number;
}

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * The first limit that a JSON text in UTF-8 exceeds, or null. One pass over the bytes that builds nothing and checks no
 * syntax: parsing a text of tiny lists takes thirty times its size and a second per ten megabytes.
 */
export function exceeded(bytes: Uint8Array, limits: JsonBounds): keyof JsonBounds | null {
  let [depth, values, bare] = [0, 1, 0];
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
      continue;
    }
    if (++bare > limits.bare) return 'bare';
    if (byte === COMMA || byte === COLON) values += 1;
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      values += 1;
      if (++depth > limits.depth) return 'depth';
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth -= 1;
    if (values > limits.values) return 'values';
  }
  return null;
}

/** Index of the closing quote. */
function endOfString(bytes: Uint8Array, start: number): number {
  for (let at = start + 1; at < bytes.length; at++) {
    if (bytes[at] === BACKSLASH) at += 1;
    else if (bytes[at] === QUOTE) return at;
  }
  return bytes.length;
}
