import { whole } from './cut-text.ts';

/**
 * How a prompt shows an output for which it has no room: as head and tail, or as a placeholder. Both name the id with which
 * `read_artifact` reads the whole output, and its size in bytes.
 */
type Count = (text: string) => number;

/** A gap in a shown output, and the bytes of the whole output. */
interface Gap {
  from: number;
  to: number;
  bytes: number;
}

const LOOKED_BACK = 256;

/** The last gap that names the id. `preview` of the tools writes the previews of long outputs. */
function gapIn(shown: string, id: string): Gap | null {
  const named = shown.lastIndexOf(`read_artifact with id @artifact/${id} `);
  if (named < 0) return null;
  const before = shown.slice(Math.max(0, named - LOOKED_BACK), named);
  const note = /(?:^|\n)(\[[^\n]* of (\d+) bytes[^\n]*)$/.exec(before);
  if (!note) return null;
  const end = shown.indexOf('\n', named);
  return {
    from: named - (note[1]?.length ?? 0),
    to: end < 0 ? shown.length : end,
    bytes: Number(note[2]),
  };
}

export function placeholder(name: string, shown: string, id: string): string {
  const bytes = gapIn(shown, id)?.bytes ?? Buffer.byteLength(shown);
  return `[the output of ${name} (${bytes} bytes) was removed to make room. All of it: read_artifact with id @artifact/${id}]`;
}

const MAX_TRIES = 12;
/** Shorter ends say nothing. */
const LEAST_ROOM = 32;

/** The output if it has at most `maxTokens`, otherwise its head and tail around a note, or only the note. */
export function cutOutput(shown: string, id: string, maxTokens: number, count: Count): string {
  const gap = gapIn(shown, id);
  const head = gap ? shown.slice(0, gap.from).trimEnd() : shown;
  const tail = gap ? shown.slice(gap.to).trimStart() : shown;
  const bytes = gap?.bytes ?? Buffer.byteLength(shown);
  const start = shown.slice(0, maxTokens * 8);
  const tokens = count(start);
  if (tokens <= maxTokens && start.length === shown.length) return shown;
  let room = Math.floor((start.length * maxTokens) / Math.max(1, tokens));
  let piece = '';
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const ends = room < LEAST_ROOM ? ['', ''] : [headOf(head, Math.ceil(room / 2)), tailOf(tail, room >> 1)];
    const [first = '', last = ''] = ends;
    const left = Math.max(0, bytes - Buffer.byteLength(first) - Buffer.byteLength(last));
    const note = `[… ${left} of ${bytes} bytes not shown; all of it: read_artifact with id @artifact/${id} …]`;
    piece = [first, note, last].filter((part) => part !== '').join('\n');
    const size = count(piece);
    if (size <= maxTokens || room < LEAST_ROOM) break;
    room = Math.floor(Math.min(room * 0.95, room * (maxTokens / size)));
  }
  return piece.length < shown.length ? piece : shown;
}

/** The head of an output, in whole lines unless these would fill less than half of the room. */
function headOf(text: string, room: number): string {
  const head = text.slice(0, room);
  const line = head.lastIndexOf('\n');
  return whole(head.length < text.length && line > room / 2 ? head.slice(0, line) : head).trimEnd();
}

function tailOf(text: string, room: number): string {
  const tail = text.slice(Math.max(0, text.length - room));
  const line = tail.indexOf('\n') + 1;
  return whole(tail.length < text.length && line < room / 2 ? tail.slice(line) : tail).trimStart();
}
