import type { EventId } from '../../events/index.ts';
import { estimateTokens } from '../budget/tokens.ts';
import { gist, headTail } from '../text/cut-text.ts';
import { cutOutput } from '../text/outputs.ts';
import type { Steps } from '../text/steps.ts';
import { type Line, lineTokens, linesOf, type Slot, type View } from '../view/view.ts';

/** A text that may be shortened. Inputs of the running turn are never shortened. */
interface LongText {
  event: EventId;
  text: string;
  tokens: number;
  /** The id by which the whole output is read; null for a text that is not an output. */
  output: string | null;
  isNew: boolean;
}

interface Shared {
  /** `size`: tokens of the view. `aim`: tokens that it may have. */
  size: number;
  aim: number;
  /** Maximum tokens of an older text while the newest results do not fit whole. */
  mostOfOld: number;
  unread: ReadonlySet<EventId | null>;
  count: (text: string) => number;
}

const LEAST_TOKENS = 80;
/** A text is cut only if it is longer than the result by this factor. */
const WORTH = 1.1;
/** Cost of shortening and counting one text, in characters. */
const CUT_WORK = 16_384;

/**
 * Shortens the long texts of a view to the same length, so that they share the room. Shorter texts stay whole. The newest
 * results are shortened last. Outputs keep head, tail and the id by which the whole output is read.
 */
export function* shareRoom(view: View, room: Shared): Steps<{ event: EventId; text: string }[]> {
  const texts = view.slots.flatMap((slot) => textsOf(slot, view, room.unread));
  yield view.slots.length;
  const levels = levelsFor(texts, room);
  const trimmed: { event: EventId; text: string }[] = [];
  for (const long of texts) {
    const most = Math.max(LEAST_TOKENS, long.isNew ? levels.ofNew : levels.ofOld);
    if (long.tokens <= most * WORTH) continue;
    trimmed.push({ event: long.event, text: cut(long, most, room.count) });
    yield CUT_WORK;
  }
  return trimmed;
}

function levelsFor(
  texts: readonly LongText[],
  { size, aim, mostOfOld }: Shared,
): { ofOld: number; ofNew: number } {
  const sizes = texts.map(({ tokens }) => tokens);
  const left = aim - size + sum(sizes);
  const old = texts.filter(({ isNew }) => !isNew).map(({ tokens }) => tokens);
  const ofOld = levelOf(old, left - (sum(sizes) - sum(old)));
  if (old.length > 0 && ofOld >= mostOfOld) return { ofOld, ofNew: Infinity };
  const ofNew = levelOf(
    texts.map(({ tokens, isNew }) => (isNew ? tokens : Math.min(tokens, mostOfOld))),
    left,
  );
  return { ofOld: Math.min(ofNew, mostOfOld), ofNew };
}

/** The length to which texts of these sizes are shortened so that together they have `room`. */
function levelOf(sizes: readonly number[], room: number): number {
  let left = room;
  for (const [at, size] of sizes.toSorted((one, other) => one - other).entries()) {
    const share = left / (sizes.length - at);
    if (size > share) return Math.floor(share);
    left -= size;
  }
  return Infinity;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

function textsOf(slot: Slot, { turn }: View, unread: ReadonlySet<EventId | null>): LongText[] {
  const { part, message, event, tokens, layer, artifact } = slot;
  if (layer === 'summary') return [];
  if (part)
    return linesOf(part)
      .filter(({ seq }) => !turn?.inputs.has(seq))
      .map(textOfLine);
  if (event === null || message.content === '') return [];
  const text = message.content;
  if (message.role === 'tool')
    return [{ event, text, tokens, output: artifact ?? event, isNew: unread.has(event) }];
  const isCalling = message.role === 'assistant' && (message.calls?.length ?? 0) > 0;
  return [{ event, text, tokens: isCalling ? estimateTokens(text) : tokens, output: null, isNew: false }];
}

function textOfLine(line: Line): LongText {
  const { event, content, from, to, output } = line;
  return {
    event,
    text: content.slice(from, to),
    tokens: lineTokens(line),
    output: output?.id ?? null,
    isNew: false,
  };
}

function cut({ text, output }: LongText, most: number, count: Shared['count']): string {
  if (output !== null) return cutOutput(text, output, most, count);
  const short = gist(text);
  const said = count(short) >= most / 2 ? short : text;
  return headTail(said, most, count) || '[left out to make room]';
}
