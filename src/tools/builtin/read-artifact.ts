import * as z from 'zod';
import { defineTool } from '../tool.ts';

/** Limit of one read; longer ranges take several reads. */
const MAX_BYTES = 12_288;
const DEFAULT_LINES = 200;

const Arguments = z.object({
  id: z.string().min(1).describe('The artifact, as in @artifact/<id>.'),
  unit: z.enum(['lines', 'bytes']).default('lines').describe('What offset and limit count.'),
  offset: z.int().nonnegative().default(0).describe('Where to start, from 0.'),
  limit: z.int().positive().optional().describe(`How much; at most ${MAX_BYTES} bytes are returned at once.`),
});

/** Reads a range of a tool output that prompts show only as a preview. */
export const readArtifactTool = defineTool({
  name: 'read_artifact',
  description:
    'Reads a range of a stored tool output, by lines or bytes. Use it where a preview ends in [...].',
  schema: Arguments,
  idempotent: true,
  bounded: true,
  async run({ id, unit, offset, limit }, { artifacts }) {
    const name = id.trim().replace(/^@artifact\//, '');
    const text = await artifacts.read(name);
    if (text === null) throw new Error(`there is no artifact ${JSON.stringify(name)}`);
    return unit === 'lines'
      ? readLines(text, offset, limit ?? DEFAULT_LINES)
      : readBytes(Buffer.from(text), offset, limit ?? MAX_BYTES);
  },
});

function readLines(text: string, offset: number, limit: number): string {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  if (offset >= lines.length) return beyond('line', offset, lines.length);
  const taken: string[] = [];
  let bytes = 0;
  for (const line of lines.slice(offset, offset + limit)) {
    bytes += Buffer.byteLength(line) + 1;
    if (bytes > MAX_BYTES && taken.length > 0) break;
    taken.push(line);
  }
  const [first = ''] = taken;
  if (Buffer.byteLength(first) > MAX_BYTES) {
    const start = Buffer.byteLength(lines.slice(0, offset).join('\n')) + (offset > 0 ? 1 : 0);
    const { part, end } = sliceBytes(Buffer.from(first), 0, MAX_BYTES);
    return `${part}\n[line ${offset} is longer than ${MAX_BYTES} bytes; continue with unit bytes, offset ${start + end}]`;
  }
  const end = offset + taken.length;
  const note = `lines ${offset} to ${end - 1} of ${lines.length}`;
  return `${taken.join('\n')}\n[${note}${end < lines.length ? `; continue with offset ${end}` : ''}]`;
}

function readBytes(bytes: Buffer, offset: number, limit: number): string {
  if (offset >= bytes.length) return beyond('byte', offset, bytes.length);
  const { part, start, end } = sliceBytes(bytes, offset, Math.min(limit, MAX_BYTES));
  const note = `bytes ${start} to ${end - 1} of ${bytes.length}`;
  return `${part}\n[${note}${end < bytes.length ? `; continue with offset ${end}` : ''}]`;
}

/** A failure, so that reading further and further beyond the end is recognised as a repetition. */
function beyond(unit: string, offset: number, size: number): string {
  const message = `nothing at ${unit} ${offset}: the artifact has ${size} ${unit}s`;
  if (offset > 0) throw new Error(message);
  return `[${message}]`;
}

/** Moves both ends to character boundaries, so that consecutive reads join without loss. */
function sliceBytes(
  bytes: Buffer,
  offset: number,
  limit: number,
): { part: string; start: number; end: number } {
  const start = characterStart(bytes, offset);
  let end = characterStart(bytes, Math.min(bytes.length, offset + limit));
  if (end <= start) end = characterStart(bytes, Math.min(bytes.length, start + 4));
  return { part: bytes.toString('utf8', start, end), start, end };
}

function characterStart(bytes: Buffer, at: number): number {
  let start = at;
  while (start > 0 && start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1;
  return start;
}
