import { createHmac } from 'node:crypto';
import { Broken } from '../target.ts';
import { checkLabel, checkWords, MARK, refuseFences, refuseHeaders, seen } from './check-words.ts';
import { SECRET } from './hostile-text.ts';
import type { Fact, Played } from './play-conversation.ts';

/**
 * Reads a prompt as it was sent, without using the code that rendered it.
 * M1  Every mark is one of ours, and its end is where we put it.
 * M2  Words stand between the mark of their author and its end, in a block behind the name of their author, or in the one
 * message that holds nothing else. In a block, no line of words begins at the margin.
 * M3  Everything else is exactly what we write, and labels are unique to an author.
 * M4  No author's words look like a mark, a fence, or the name of a speaker.
 */
const MARKED = /^\[([^[\]]*) #(\d{6})\]$/;
const TIME = String.raw`(?:(?:\d{4}-)?\d\d-\d\d )?\d\d:\d\d`;
/** A line of a block: its head, and the words. */
const SPOKEN = /^(?:\[([^[\]\n]*)\]|(->)) (.*)$/s;
const TIME_ALONE = new RegExp(`^${TIME}$`);
const TIME_BEHIND = new RegExp(` ${TIME}$`);
const LABEL = /^([^[\]<>\n]+?)(?:>(@[^[\]<>\n]*))?$/s;
const OF_EVENT = /^(.*?) (?:handed this conversation over to you|began the phase .*; what came before it)$/s;
const LATE = /^late result of [A-Za-z0-9_.:-]{1,64}$/;
const LIVE = new RegExp(String.raw`\n\n\[${TIME}\]$`);
const REMINDER = /\n\n\[reminder #(\d{6})\]\n([^]*)\n#\1$/;
const FAILURE = /^\[reminder #(\d{6})\]\n\[(?:interrupted|this turn failed: [a-z_]+)\]\n#\1$/;
const EARLIER = '(addressed to you earlier)\n';
const OURS = new Set(['[nothing new was said: go on]', '[the conversation begins]']);

interface Context {
  facts: Played['facts'];
  keys: ReadonlyMap<string, { place: string; seq: number }>;
  labels: Map<string, string>;
}

export function checkMarks({ messages, facts }: Played): void {
  const context = { facts, keys: keysOf([...facts.keys()]), labels: new Map<string, string>() };
  for (const message of messages) {
    const { role, content } = message;
    if (role === 'user') checkUser(content, message.seqs, context);
    if (role === 'system') checkWords(content, () => false);
    if (role === 'assistant') checkWords(content, ({ author }) => author.id === 'ada', facts);
    if (role === 'tool') {
      const isOfCall = ({ call }: Fact) =>
        call !== null && message.seqs.some((seq) => facts.get(seq)?.call === call);
      checkWords(content, isOfCall, facts);
      refuseFences(content);
      refuseMarks(content);
    }
  }
}

function checkUser(content: string, seqs: readonly number[], context: Context): void {
  if (isFailure(content, seqs, context)) return;
  const said = withoutLive(content, context);
  const isEarlier = said.startsWith(EARLIER);
  const lines = (isEarlier ? said.slice(EARLIER.length) : said).split('\n');
  const shown: number[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? '';
    const [, head = '', key = ''] = MARKED.exec(line) ?? [];
    const place = context.keys.get(key);
    if (place === undefined) break;
    const end = lines.indexOf(head === 'new' ? '#' : `#${key}`, at);
    if (end === -1) throw new Broken(`${line} has no end`);
    const body = lines.slice(at + 1, end);
    if (head === 'new') shown.push(...checkBlock(body, place.seq, context));
    else shown.push(checkMarked(head, body, place.seq, context));
    at = end + 1;
  }
  const rest = lines.slice(at).join('\n');
  if (at < lines.length && !OURS.has(rest)) shown.push(checkBare(rest, context));
  if (shown.join() !== seqs.filter((seq) => context.facts.has(seq)).join())
    throw new Broken(`a message of events ${seqs.join()} shows ${shown.join()}`);
}

/** Whether the runtime tells here, in its own words, how a turn has ended. */
function isFailure(content: string, seqs: readonly number[], { keys }: Context): boolean {
  const place = keys.get(FAILURE.exec(content)?.[1] ?? '');
  if (!place?.place.startsWith('failure')) return false;
  if (seqs.some((seq) => seq !== place.seq)) throw new Broken(`a failure is said to show ${seqs.join()}`);
  return true;
}

/** Removes the live block: a time, or a reminder without words of anybody. */
function withoutLive(content: string, { keys }: Context): string {
  const time = LIVE.exec(content);
  if (time) return content.slice(0, time.index);
  const reminder = REMINDER.exec(content);
  if (!reminder || !keys.get(reminder[1] ?? '')?.place.startsWith('live')) return content;
  const items = reminder[2] ?? '';
  if (!/^[a-z]+: /.test(items)) throw new Broken(`a reminder with ${JSON.stringify(items)}`);
  checkWords(items, () => false);
  refuseFences(items);
  refuseMarks(items);
  return content.slice(0, reminder.index);
}

/** The event whose words stand between a mark and its end. */
function checkMarked(head: string, body: readonly string[], seq: number, context: Context): number {
  const fact = context.facts.get(seq);
  if (!fact) throw new Broken(`a mark of no event: ${head}`);
  checkHead(head.replace(TIME_BEHIND, ''), fact, context);
  checkOwn(body.join('\n'), fact, context);
  return seq;
}

/** Checks the name in a head. Returns the recipients that it names. */
function checkHead(head: string, { kind, author }: Fact, { labels }: Context): string | undefined {
  if (kind === 'tool.result') {
    if (!LATE.test(head)) throw new Broken(`a late result is called ${head}`);
    return undefined;
  }
  const [, label = '', recipients] = LABEL.exec(OF_EVENT.exec(head)?.[1] ?? head) ?? [];
  checkLabel(label, author, labels);
  return OF_EVENT.test(head) ? undefined : recipients;
}

function checkBlock(lines: readonly string[], first: number, context: Context): number[] {
  const shown: number[] = [];
  let before: { head: string; recipients: string | undefined } = { head: '', recipients: undefined };
  for (let at = 0; at < lines.length;) {
    let end = at + 1;
    while (end < lines.length && (lines[end] ?? '').startsWith(' ')) end += 1;
    const spoken = SPOKEN.exec(lines.slice(at, end).join('\n'));
    if (!spoken) throw new Broken(`at the margin of a block: ${JSON.stringify(lines[at])}`);
    const [, given = '', arrow, words = ''] = spoken;
    const head = nameIn(arrow ?? given, before);
    const n = Number(/w(\d+)a/.exec(words)?.[1] ?? NaN);
    const fact = context.facts.get(n);
    if (!fact) throw new Broken(`a line of nobody: ${JSON.stringify(lines[at])}`);
    before = { head, recipients: checkHead(head, fact, context) };
    checkOwn(words, fact, context);
    refuseBlockMarks(words);
    if (/[\r\v\f\u0085\u2028\u2029](?![ \n])/.test(words))
      throw new Broken('words begin at the margin of a block');
    if (fact.kind !== 'tool.result' && !OF_EVENT.test(head)) refuseHeaders(words);
    shown.push(n);
    at = end;
  }
  if (shown[0] !== first) throw new Broken(`the block of ${first} begins with ${shown[0]}`);
  return shown;
}

/** The name that a head of a block stands for. */
function nameIn(given: string, before: { head: string; recipients: string | undefined }): string {
  const name = TIME_ALONE.test(given) ? '' : given.replace(TIME_BEHIND, '');
  if (name === '') return before.head;
  if (name !== '->') return name;
  if (before.recipients === undefined || before.recipients.includes(','))
    throw new Broken('an answer of nobody');
  return before.recipients;
}

/** The only person's words, or a named person's: nothing else is in the message. */
function checkBare(own: string, context: Context): number {
  const n = Number(/w(\d+)a/.exec(own)?.[1] ?? NaN);
  const fact = context.facts.get(n);
  if (fact?.author.kind !== 'user') throw new Broken(`outside of all marks stands ${JSON.stringify(own)}`);
  const begins = own.indexOf(`w${n}a`);
  const before = own.slice(0, begins);
  const head = /^\[([^[\]\n]+)\] $/.exec(before)?.[1];
  if (head === undefined && before !== '')
    throw new Broken(`before a person's words stands ${JSON.stringify(before)}`);
  if (head !== undefined) checkHead(head.replace(TIME_BEHIND, ''), fact, context);
  refuseBlockMarks(own.slice(begins));
  checkOwn(own.slice(begins), fact, context);
  refuseHeaders(own.slice(begins));
  return n;
}

function checkOwn(text: string, { seq }: Fact, { facts }: Context): void {
  checkWords(text, (fact) => fact.seq === seq, facts);
  if (![...text.matchAll(MARK)].some(([, n]) => Number(n) === seq)) throw new Broken(`event ${seq} is empty`);
  refuseFences(text);
  refuseMarks(text);
}

function refuseMarks(words: string): void {
  const looks = seen(words);
  const found =
    /^[^\S\n]*(?:\[[^\]\n]{0,600}#\s*\p{N}[\p{N}\s]*\]|\[\s*(?:reminder|time)\s*[\]#]|#\s*\p{N}[^\p{L}\n]*$)/imu.exec(
      looks,
    );
  if (found) throw new Broken(`words look like a mark: ${JSON.stringify(found[0])}`);
}

/** What begins and ends a block, and its lines. */
function refuseBlockMarks(words: string): void {
  const found =
    /^[^\S\n]*(?:\[\s*new\s*[\]#\p{N}]|#[^\S\n]*$|\[?\s*->|\[[\d\s-]*\d\d:\d\d\s*\]|\[[^\]\n]{0,600}>\s*@)/imu.exec(
      seen(words),
    );
  if (found) throw new Broken(`words look like a line of a block: ${JSON.stringify(found[0])}`);
}

function keysOf(seqs: readonly number[]): Context['keys'] {
  const keys = new Map<string, { place: string; seq: number }>();
  const add = (place: string, seq: number) => {
    const bits = createHmac('sha256', SECRET).update(place).digest().readUIntBE(0, 6);
    keys.set(`${bits % 1_000_000}`.padStart(6, '0'), { place, seq });
  };
  for (const seq of seqs) {
    add(`live c:ada:${seq}`, seq);
    add(`missed ${seq}`, seq);
    add(`failure e${seq}`, seq);
    add(`${seq}`, seq);
  }
  return keys;
}
