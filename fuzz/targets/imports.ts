import { below, pick, type Random } from '../../sim/random.ts';
import { TroupeError } from '../../src/base/errors.ts';
import { type AgentId, EventDraft } from '../../src/events/index.ts';
import { importTranscript, newImportReport } from '../../src/library/import/index.ts';
import { mutate, mutateText } from '../mutate.ts';
import { nastyText } from '../nasty.ts';
import { Broken, type Target } from '../target.ts';
import { checkReadAgain } from './events.ts';
import { type Format, FORMATS, transcripts } from './transcripts.ts';

/**
 * Damaged transcripts of every format.
 * M1  An import ends with a report, or with `import_invalid`.
 * M2  Every output is a valid draft event, can be written, and reads back the same.
 * M3  No counted event is lost: there are as many drafts as the report says.
 * M4  A file of which nothing comes is refused, unless it is our own export of an empty conversation.
 */
export interface ImportInput {
  format: Format | 'auto';
  text: string;
  /** `latin1`: every character from U+0080 on is a byte that is not valid UTF-8. */
  encoding: 'utf8' | 'latin1';
  /** Bytes per chunk. */
  chunk: number;
}

export function importsTarget(read: typeof importTranscript = importTranscript): Target<ImportInput> {
  return {
    name: 'imports',
    make: makeInput,
    async run({ format, text, encoding, chunk }) {
      const report = newImportReport();
      let drafts = 0;
      try {
        const chunks = chunksOf(Buffer.from(String(text), encoding), Math.max(1, chunk));
        for await (const { draft } of read(chunks, { agent: 'coder' as AgentId, format }, report)) {
          drafts += 1;
          if (!draft) continue;
          if (!EventDraft.safeParse(draft).success)
            throw new Broken(`a draft of kind ${draft.kind} is no event`);
          checkReadAgain(EventDraft, draft);
        }
      } catch (error) {
        if (error instanceof TroupeError && error.policy === 'fix_input') return error.code;
        throw error;
      }
      if (drafts !== report.events) throw new Broken('the report counts other drafts');
      if (drafts === 0 && report.format !== 'troupe')
        throw new Broken('nothing came in, and nobody was told');
      return drafts === 0 ? 'nothing in it' : 'accepted';
    },
  };
}

/** Characters. The time that a valid long line takes is not tested here. */
const LONGEST = 60_000;

async function* chunksOf(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

function makeInput(random: Random): ImportInput {
  const format = pick(random, FORMATS);
  const values = transcripts(format);
  const lines = values.map((value) => JSON.stringify(value));
  const damages = 1 + below(random, 3);
  for (let time = 0; time < damages; time++) damageLines(random, values, lines);
  const asArray = random() < 0.1;
  const text = asArray
    ? `[${lines.join(',\n')}]`
    : lines.join(pick(random, ['\n', '\n', '\r\n', '\n\n', '\r']));
  return {
    format: random() < 0.5 ? 'auto' : random() < 0.8 ? format : pick(random, FORMATS),
    text: (random() < 0.2 ? mutateText(random, text) : text).slice(0, LONGEST),
    encoding: random() < 0.9 ? 'utf8' : 'latin1',
    chunk: pick(random, [1_000_000, 4_096, 61, 7]),
  };
}

function damageLines(random: Random, values: readonly unknown[], lines: string[]): void {
  const at = below(random, lines.length);
  const line = lines[at] ?? '';
  const roll = random();
  if (roll < 0.55) lines[at] = JSON.stringify(mutate(random, values[at])) ?? '';
  else if (roll < 0.65) lines[at] = mutateText(random, line);
  else if (roll < 0.7) lines[at] = line.slice(0, below(random, line.length + 1));
  else if (roll < 0.78) lines.splice(at, 0, line);
  else if (roll < 0.84) lines.push(...lines.splice(at, 1));
  else if (roll < 0.88) lines[at] = line.replace(/:\d+/, ':1e999');
  else if (roll < 0.92) lines[at] = deepen(random, line);
  else if (roll < 0.96) lines.splice(at, 0, nastyText(random));
  else lines[at] = line.replaceAll('"', pick(random, ["'", '"\0', '\\"', '“']));
}

/** Nests a value of the line thousands of levels deep. Built as text, since a serialiser would overflow its stack. */
function deepen(random: Random, line: string): string {
  const levels = pick(random, [65, 1_000, 12_000]);
  const deep =
    random() < 0.5
      ? '['.repeat(levels) + ']'.repeat(levels)
      : `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  const places = [...line.matchAll(/(?<=":)(?:"[^"]*"|\d+|\{[^{}]*\}|\[[^[\]]*\])/g)];
  const place = pick(random, places);
  if (!place) return line + deep;
  return line.slice(0, place.index) + deep + line.slice(place.index + place[0].length);
}
