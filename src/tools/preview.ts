interface PreviewOptions {
  /** Size of the preview in UTF-8 bytes, including its note. Default 16,384. */
  maxBytes?: number;
  /** Most lines of the preview. Default 400. */
  maxLines?: number;
  /** Id of the artifact with the whole text; the note names it. */
  artifact?: string;
}

/** Room for the note between head and tail. */
const NOTE_BYTES = 320;

/**
 * A text as a prompt shows it: whole if it is short, else head and tail with a note about the missing middle. Depends on its
 * arguments alone, so the same output always looks the same.
 */
export function preview(text: string, options: PreviewOptions = {}): { text: string; cut: boolean } {
  const { maxBytes = 16_384, maxLines = 400, artifact } = options;
  const bytes = Buffer.byteLength(text);
  const lines = countLines(text);
  if (bytes <= maxBytes && lines <= maxLines) return { text, cut: false };
  const room = Math.max(0, maxBytes - NOTE_BYTES);
  const headLines = Math.ceil(maxLines / 2);
  const head = takeHead(text, Math.ceil(room / 2), headLines);
  const tail = takeTail(text.slice(head.length), Math.floor(room / 2), maxLines - headLines);
  const middle = text.slice(head.length, text.length - tail.length);
  const missing = `${Buffer.byteLength(middle)} of ${bytes} bytes, about ${countLines(middle)} of ${lines} lines`;
  const where = artifact ? `; all of it: read_artifact with id @artifact/${artifact}` : '';
  const parts = [head.replace(/\n$/, ''), `[... ${missing} not shown${where} ...]`, tail];
  return { text: parts.filter((part) => part !== '').join('\n'), cut: true };
}

function countLines(text: string): number {
  let lines = text === '' || text.endsWith('\n') ? 0 : 1;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines;
}

function takeHead(text: string, maxBytes: number, maxLines: number): string {
  let end = 0;
  for (let lines = 0; lines < maxLines && end < text.length && end <= maxBytes; lines += 1) {
    const next = text.indexOf('\n', end);
    end = next < 0 ? text.length : next + 1;
  }
  // A code unit takes at least one byte, so this bounds the text before it is encoded.
  let head = text.slice(0, Math.min(end, maxBytes));
  head = head.slice(0, unitsWithin(head, maxBytes));
  if (isHighSurrogate(head.charCodeAt(head.length - 1))) head = head.slice(0, -1);
  // Keeps whole lines, unless that would drop most of the text.
  const line = head.lastIndexOf('\n') + 1;
  return head.length < end && line > head.length / 2 ? head.slice(0, line) : head;
}

function takeTail(text: string, maxBytes: number, maxLines: number): string {
  if (maxBytes <= 0 || maxLines <= 0) return '';
  let start = text.length;
  const body = text.endsWith('\n') ? text.length - 1 : text.length;
  let at = body;
  for (let lines = 0; lines < maxLines && at > 0 && text.length - start <= maxBytes; lines += 1) {
    at = text.lastIndexOf('\n', at - 1);
    start = at + 1;
    if (at < 0) break;
  }
  let tail = text.slice(Math.max(start, text.length - maxBytes));
  const isPartial = tail.length < text.length - start;
  let drop = 0;
  for (let excess = Buffer.byteLength(tail) - maxBytes; excess > 0; drop += 1) {
    excess -= unitBytes(tail, drop);
  }
  tail = tail.slice(drop);
  if (isLowSurrogate(tail.charCodeAt(0))) tail = tail.slice(1);
  const line = tail.indexOf('\n') + 1;
  return (isPartial || drop > 0) && line > 0 && line < tail.length / 2 ? tail.slice(line) : tail;
}

/** Number of leading code units that fit into `maxBytes`. */
function unitsWithin(text: string, maxBytes: number): number {
  let bytes = 0;
  for (let at = 0; at < text.length; at += 1) {
    bytes += unitBytes(text, at);
    if (bytes > maxBytes) return at;
  }
  return text.length;
}

/** UTF-8 bytes of one code unit. Half a surrogate pair counts two: the pair takes four. */
function unitBytes(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code < 0x80) return 1;
  if (code < 0x800 || (code >= 0xd800 && code <= 0xdfff)) return 2;
  return 3;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}
