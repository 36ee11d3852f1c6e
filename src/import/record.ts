import { TroupeError } from '../errors.ts';

/** A JSON value or a piece of text that is not JSON, with the line it starts on. */
export type SourceRecord =
  | { line: number; json: true; value: unknown }
  | { line: number; json: false; text: string };

/** In characters. A longer line is refused, so that one file cannot exhaust memory. */
const MAX_LINE = 16 * 1024 * 1024;

export async function* readRecords(
  chunks: AsyncIterable<string | Uint8Array>,
): AsyncGenerator<SourceRecord, void> {
  const decoder = new TextDecoder();
  const splitter = new RecordSplitter();
  for await (const chunk of chunks) {
    yield* splitter.push(typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true }));
  }
  yield* splitter.push(decoder.decode());
  yield* splitter.end();
}

/**
 * Splits a stream of text into JSON values. The first character decides the layout:
 *   `[`   the elements of the array, one by one, then lines;
 *   `{`   one balanced value, perhaps over many lines, then lines (for JSONL that value is its first line);
 *   else  lines.
 * Owns only the unfinished record.
 * 1. A first value that exceeds MAX_LINE or is not JSON is read again as lines, so that a broken first line costs that
 *    line alone. From then on every newline ends a record.
 * 2. Text is kept as parts and joined once: re-joining at each chunk would be quadratic in the line.
 */
class RecordSplitter {
  #mode: 'start' | 'value' | 'array' | 'lines' = 'start';
  #parts: string[] = [];
  #size = 0;
  #line = 1;
  #depth = 0;
  #inString = false;
  #escaped = false;
  #emitted = 0;

  *push(chunk: string): Generator<SourceRecord, void> {
    let rest = chunk;
    while (rest !== '') {
      if (this.#mode === 'start') rest = this.#begin(rest);
      else if (this.#mode === 'lines') rest = yield* this.#takeLine(rest);
      else rest = yield* this.#takeValue(rest);
    }
  }

  *end(): Generator<SourceRecord, void> {
    if (this.#mode === 'value' || this.#mode === 'array') yield* this.push(yield* this.#finish(''));
    yield* this.#emitLine();
  }

  #begin(text: string): string {
    const rest = this.#skip(text, /^[\s\uFEFF]*/);
    if (rest === '') return '';
    this.#mode = rest.startsWith('[') ? 'array' : rest.startsWith('{') ? 'value' : 'lines';
    return this.#mode === 'array' ? rest.slice(1) : rest;
  }

  *#takeLine(text: string): Generator<SourceRecord, string> {
    const end = text.indexOf('\n');
    const piece = end === -1 ? text : text.slice(0, end);
    if (this.#size + piece.length > MAX_LINE) throw lineTooLong(this.#line);
    this.#keep(piece);
    if (end === -1) return '';
    yield* this.#emitLine();
    this.#line += 1;
    return text.slice(end + 1);
  }

  *#emitLine(): Generator<SourceRecord, void> {
    const text = this.#take();
    if (text.trim() === '') return;
    this.#emitted += 1;
    yield parseRecord(this.#line, text);
  }

  *#takeValue(text: string): Generator<SourceRecord, string> {
    let rest = text;
    if (this.#mode === 'array' && this.#size === 0) {
      rest = this.#skip(rest, /^[\s,]*/);
      if (rest === '') return '';
      if (rest.startsWith(']')) {
        this.#mode = 'lines';
        return rest.slice(1);
      }
    }
    const end = this.#scan(rest);
    const piece = end === -1 ? rest : rest.slice(0, end);
    if (this.#size + piece.length > MAX_LINE) return this.#asLines(this.#take() + rest);
    this.#keep(piece);
    return end === -1 ? '' : yield* this.#finish(rest.slice(end));
  }

  /** Emits the value, which is complete or cut off by the end of the text. Returns the text still to be read. */
  *#finish(rest: string): Generator<SourceRecord, string> {
    const text = this.#take();
    this.#depth = 0;
    this.#inString = false;
    this.#escaped = false;
    if (text.trim() === '') return rest;
    const record = parseRecord(this.#line, text);
    if (!record.json && this.#emitted === 0) return this.#asLines(text + rest);
    this.#emitted += 1;
    this.#line += newlines(text);
    if (this.#mode === 'value') this.#mode = 'lines';
    yield record;
    return rest;
  }

  #asLines(text: string): string {
    this.#mode = 'lines';
    return text;
  }

  /** The index where the value ends, or -1. State is kept between chunks. */
  #scan(text: string): number {
    for (let i = 0; i < text.length; i += 1) {
      const char = text[i];
      if (this.#inString) this.#scanString(char);
      else if (char === '"') this.#inString = true;
      else if (char === '{' || char === '[') this.#depth += 1;
      else if (this.#depth === 0) {
        if (this.#mode === 'array' && (char === ',' || char === ']')) return i;
      } else if (char === '}' || char === ']') {
        this.#depth -= 1;
        if (this.#depth === 0 && this.#mode === 'value') return i + 1;
      }
    }
    return -1;
  }

  #scanString(char: string | undefined): void {
    if (this.#escaped) this.#escaped = false;
    else if (char === '\\') this.#escaped = true;
    else if (char === '"') this.#inString = false;
  }

  #skip(text: string, blank: RegExp): string {
    const skipped = blank.exec(text)?.[0] ?? '';
    this.#line += newlines(skipped);
    return text.slice(skipped.length);
  }

  #keep(piece: string): void {
    this.#parts.push(piece);
    this.#size += piece.length;
  }

  #take(): string {
    const text = this.#parts.join('');
    this.#parts = [];
    this.#size = 0;
    return text;
  }
}

function parseRecord(line: number, text: string): SourceRecord {
  try {
    return { line, json: true, value: JSON.parse(text) };
  } catch {
    // Expected: the report counts records that are not JSON.
    return { line, json: false, text };
  }
}

function newlines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}

function lineTooLong(line: number): TroupeError {
  return new TroupeError('import_invalid', `Line ${line} is longer than 16 MiB; split it or remove it.`, {
    line,
    limit: MAX_LINE,
  });
}
