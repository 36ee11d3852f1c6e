import { JsonData } from '../../events/index.ts';
import type { ResponseName } from '../../providers/provider.ts';
import type { ReplySchema } from '../engine/agent-runtime.ts';
import type { AnswerFault, ModelAnswer } from './turn-run.ts';

interface Answered {
  kind: 'answered';
  answer: ModelAnswer;
  response?: ResponseName;
}

/** Longest reply that is parsed as data; an event may hold far less. */
const MAX_REPLY_CHARS = 4 * 1_024 * 1_024;

/** Checks the final answer of a turn against the agent's reply schema. What does not fit is the answer's fault. */
export async function checkReply(reply: ReplySchema | null, outcome: Answered): Promise<Answered> {
  const { answer } = outcome;
  if (!reply || answer.calls.length > 0 || answer.stop === 'refusal' || answer.fault) return outcome;
  const read = await dataOf(answer.text, reply);
  if ('data' in read) return { ...outcome, answer: { ...answer, ...read } };
  const why = answer.stop === 'length' && read.isCut ? 'it was cut off at maxOutputTokens' : read.problem;
  return { ...outcome, answer: { ...answer, fault: faultOf(why) } };
}

function faultOf(why: string): AnswerFault {
  return {
    note: `Your reply does not fit the schema that it must have: ${why}. Reply again with JSON alone that fits it, without any other words.`,
    code: 'provider_invalid_reply',
    message: `the reply does not fit the agent's reply schema: ${why}`,
  };
}

/** `isCut`: the text ends within its data. */
type Read = { text: string; data: unknown } | { problem: string; isCut?: true };

async function dataOf(said: string, reply: ReplySchema): Promise<Read> {
  if (said.length > MAX_REPLY_CHARS)
    return { problem: `it has ${said.length} characters, and at most ${MAX_REPLY_CHARS} are read` };
  const text = withoutFence(said);
  const value = parseJson(text);
  if (!(value instanceof SyntaxError)) return fitting(reply, text, value);
  // A schema that admits a text takes words as they are.
  const words = await reply.check(said);
  if ('data' in words) return { text: said, data: words.data };
  const found = await dataInWords(said, reply);
  return (
    found ?? { problem: said.trim() === '' ? 'it is empty' : `it is no JSON: ${value.message}`, isCut: true }
  );
}

async function fitting(reply: ReplySchema, text: string, value: unknown): Promise<Read> {
  const checked = await reply.check(value);
  if ('problem' in checked) return checked;
  return JsonData.safeParse(checked.data).success
    ? { text, data: checked.data }
    : { problem: 'it is nested too deeply' };
}

/** Data with words around it: in fences, closed or not, or bare. Of several pieces one alone may fit. Null: there is none. */
async function dataInWords(said: string, reply: ReplySchema): Promise<Read | null> {
  const fenced = await readAll(fencesIn(said), reply);
  const read = fenced.length > 0 ? fenced : await readAll(bracketsIn(said), reply);
  const fits = read.filter((each) => 'data' in each);
  if (fits.length > 1) return { problem: 'it holds several pieces of JSON that fit' };
  return fits[0] ?? read[0] ?? null;
}

async function readAll(texts: readonly string[], reply: ReplySchema): Promise<Read[]> {
  const read: Read[] = [];
  for (const text of texts) {
    const value = parseJson(text);
    if (!(value instanceof SyntaxError)) read.push(await fitting(reply, text, value));
  }
  return read;
}

const MOST_FENCES = 8;
const FENCE_LINE = /^[ \t]{0,3}(`{3,}|~{3,})[ \t]*(?:[\w+.-]{1,20}[ \t]*)?\r?$/;

function fencesIn(said: string): string[] {
  const found: string[] = [];
  let open: { mark: string; lines: string[] } | null = null;
  for (const line of said.split('\n')) {
    const mark = FENCE_LINE.exec(line)?.[1];
    if (open && mark?.startsWith(open.mark)) {
      found.push(open.lines.join('\n'));
      open = null;
    } else if (open) open.lines.push(line);
    else if (mark !== undefined) open = { mark, lines: [] };
  }
  if (open) found.push(open.lines.join('\n'));
  return found.slice(0, MOST_FENCES).map((text) => text.trim());
}

/** From the first bracket to the last one of its kind. */
function bracketsIn(said: string): string[] {
  return ['{}', '[]'].flatMap((pair) => {
    const begin = said.indexOf(pair.slice(0, 1));
    const end = said.lastIndexOf(pair.slice(1));
    return begin >= 0 && end > begin ? [said.slice(begin, end + 1)] : [];
  });
}

const FENCE = /^```(?:json)?[^\S\n]*\n/i;

/** Some models wrap their data in a Markdown fence. */
function withoutFence(text: string): string {
  const whole = text.trim();
  const start = FENCE.exec(whole)?.[0].length;
  const end = whole.length - '```'.length;
  return start === undefined || start > end || !whole.endsWith('```')
    ? text
    : whole.slice(start, end).trimEnd();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return error; // A SyntaxError, which no JSON text gives.
  }
}
