import { stripVTControlCharacters, styleText } from 'node:util';

/** Output of the commands: one JSON value per line, or text with colours on a terminal. */
export type Style = Parameters<typeof styleText>[0];

export function paint(style: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  return styleText(style, text, { stream });
}

/** Whether output has colours. Without them, marks carry the meaning. */
export function isPainted(): boolean {
  return paint('bold', ' ') !== ' ';
}

export function print(text = ''): void {
  process.stdout.write(`${text}\n`);
}

/** Writes to stderr, which `$( )` and pipes do not capture. */
export function printHint(text: string): void {
  process.stderr.write(`${paint('dim', text, process.stderr)}\n`);
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value));
}

export function errorText(
  error: { code: string; message: string; data: Record<string, unknown> },
  asJson: boolean,
): string {
  return asJson ? `${JSON.stringify({ error })}\n` : `${error.code}: ${printable(error.message)}\n`;
}

/** Control characters except tab and newline, and marks that reorder a line: they could control the terminal. */
// oxlint-disable-next-line no-control-regex
const UNPRINTABLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

export function printable(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(UNPRINTABLE, (mark) => {
    const code = mark.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : '\ufffd';
  });
}

/** One line of at most `width` characters. */
export function clip(text: string, width: number): string {
  const line = printable(text).replace(/\s+/g, ' ').trim();
  return line.length <= width ? line : `${line.slice(0, width - 1)}…`;
}

/** Cuts at `width` characters, spaces included. */
export function cutOff(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}

/** A title and its text, in lines of at most `width` characters. A longer word stays whole. */
export function paragraph(title: string, text: string, { indent = 10, width = 80 } = {}): string {
  const lines: string[] = [];
  let line = title.padEnd(indent);
  for (const word of text.split(' ')) {
    if (line.length > indent && line.length + word.length > width) {
      lines.push(line.trimEnd());
      line = ' '.repeat(indent);
    }
    line += `${word} `;
  }
  return [...lines, line.trimEnd()].join('\n');
}

/** Rows in aligned columns; the columns in `right` are right-aligned. */
export function table(rows: readonly string[][], right: readonly number[] = []): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, visibleLength(cell));
    }
  }
  return rows
    .map((row) =>
      row.map((cell, column) => pad(cell, widths[column] ?? 0, right.includes(column))).join('  '),
    )
    .map((line) => line.trimEnd())
    .join('\n');
}

function pad(cell: string, width: number, isRight: boolean): string {
  const space = ' '.repeat(width - visibleLength(cell));
  return isRight ? space + cell : cell + space;
}

function visibleLength(text: string): number {
  return stripVTControlCharacters(text).length;
}

export function count(things: number, noun: string): string {
  return `${number(things)} ${noun}${things === 1 ? '' : 's'}`;
}

/** A whole number, such as 12,345. The first `toLocaleString` would take 27 ms. */
export function number(value: number): string {
  return String(value).replaceAll(/\B(?=(?:\d{3}){1,7}$)/g, ',');
}

/** Width of the terminal in columns; some terminals report 0. */
export function screenWidth(): number {
  return Math.min(process.stdout.columns || 100, 120);
}
