/**
 * PostgreSQL stores text as UTF-8, which has no lone surrogates, and never a NUL. These units are escaped with a character
 * that JSON texts do not contain. A text has exactly one stored form, so stored values can be compared.
 */
const MARK = '\u0001';
/** Digits after the mark. */
const DIGITS = 4;
const LONE_SURROGATE = /\p{Cs}/gu;

export function toStored(text: string): string {
  if (text.isWellFormed() && !text.includes('\0') && !text.includes(MARK)) return text;
  return text.replaceAll(MARK, escaped).replaceAll('\0', escaped).replace(LONE_SURROGATE, escaped);
}

export function fromStored(stored: string): string {
  if (!stored.includes(MARK)) return stored;
  const [first = '', ...rest] = stored.split(MARK);
  const unescaped = rest.map(
    (part) => String.fromCharCode(Number.parseInt(part.slice(0, DIGITS), 16)) + part.slice(DIGITS),
  );
  return first + unescaped.join('');
}

function escaped(unit: string): string {
  return MARK + unit.charCodeAt(0).toString(16).padStart(DIGITS, '0');
}
