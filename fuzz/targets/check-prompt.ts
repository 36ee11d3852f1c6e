import { createHmac } from 'node:crypto';
import { Broken } from '../target.ts';
import { checkLabel, checkWords, MARK, refuseFences, refuseHeaders } from './check-words.ts';
import { SECRET } from './hostile-text.ts';
import type { Played } from './play-conversation.ts';

/**
 * Reads a prompt of rendering 1 or 2 as it was sent, without using the code that rendered it.
 * F1  Every fence is one of ours: opened once, closed once, on its own lines, nested only where we nest them.
 * F2  Every author's words lie between the ends of its fence, or in the one message that holds nothing else.
 * F3  Text outside fences is exactly what we write, and every header belongs to the author of the next fence. Labels
 * are unique to an author.
 * F4  No author's words look like a fence, and none outside of fences look like a header.
 */
const FENCE = /<(\/?)(msg|missed|handoff|reminder|summary|transcript)-([0-9a-f]{8})>/g;
const LINE_END = /[\n\r\v\f\u0085\u2028\u2029]/;
/** Replaces a fence once it is read. No prompt contains two such lone surrogates together. */
const HOLE = '\ud800\ud800';
const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\dZ `;
const HEADER = new RegExp(
  String.raw`^(?:${TIME})?\[([^[\]<>\n]+?)(?: -> (@[^[\]<>\n]*))?\](?: handed this conversation over to you:| began the phase .*\. What came before it:)?$`,
  's',
);
const OURS = new Set([
  '',
  'While you were away:',
  '(addressed to you earlier)',
  '[nothing new was said: go on]',
  '[the conversation begins]',
]);

interface Region {
  tag: string;
  /** The event with this key; null if the key belongs to no event. */
  seq: number | null;
  from: number;
  to: number;
  inner: Region[];
  end: number;
  start: number;
}

export function checkPrompt({ messages, facts }: Played): void {
  const keys = keysOf([...facts.keys()]);
  const labels = new Map<string, string>();
  const opened = new Set<string>();
  for (const message of messages) {
    const { role, content } = message;
    if (role === 'user') checkUser(content, message.seqs, { facts, keys, labels, opened });
    if (role === 'system') checkWords(content, () => false);
    if (role === 'assistant') checkWords(content, ({ author }) => author.id === 'ada', facts);
    if (role === 'tool') {
      checkWords(
        content,
        ({ call }) => call !== null && message.seqs.some((seq) => facts.get(seq)?.call === call),
        facts,
      );
      refuseFences(content);
    }
  }
}

/** Checks a summary and its quotes against the names of the speakers. `inLines`: quotes of one line have no fence. */
export function checkSummary(content: string, quotes: number, inLines: boolean): void {
  const keys = keysOf(Array.from({ length: quotes }, (_, index) => index + 1));
  const regions = readFences(content, keys, new Set());
  const [summary] = regions;
  if (
    regions.length !== 1 ||
    summary?.tag !== 'summary' ||
    summary.start !== 0 ||
    summary.end !== content.length
  )
    throw new Broken('a summary is not one fence');
  for (const { seq, from, to } of summary.inner) {
    const words = content.slice(from, to);
    if (!words.startsWith(`w${seq}a`) || !words.endsWith(`w${seq}z`))
      throw new Broken('a quote is not what its fence holds');
    refuseFences(words);
    if (inLines && headsIn(words.split(LINE_END)).length > 0)
      throw new Broken('a quote has a header in its fence');
  }
  const rest = outside(content, summary.from, summary.to, summary.inner);
  if (inLines) checkQuoteLines(rest.split(LINE_END), summary.inner, quotes);
  else checkFencedQuotes(rest, summary.inner, quotes);
}

function checkFencedQuotes(rest: string, inner: readonly Region[], quotes: number): void {
  if (inner.length !== quotes) throw new Broken('a summary has other fences than its quotes');
  if (inner.some(({ seq }, index) => seq !== index + 1))
    throw new Broken('a quote stands in the fence of another');
  for (const [, n] of rest.matchAll(MARK)) if (n !== '0') throw new Broken('a quote is outside of its fence');
  const lines = rest.split('\n');
  const heads = lines.filter((line, at) => /^\[.*\] #\d+$/s.test(line) && lines[at + 1] === HOLE);
  if (heads.length !== quotes) throw new Broken('a summary has other headers than its quotes');
}

/** Every quote has one header, in order, with its words behind it or in the fence below it. */
function checkQuoteLines(lines: readonly string[], inner: readonly Region[], quotes: number): void {
  const heads = headsIn(lines);
  if (heads.length !== quotes) throw new Broken('a summary has other headers than its quotes');
  const fences = [...inner];
  for (const [index, { at, words }] of heads.entries()) {
    const seq = index + 1;
    const fenced = words === null ? fences.shift() : undefined;
    if (words === null && (lines[at + 1] !== HOLE || fenced?.seq !== seq))
      throw new Broken('a quote stands in the fence of another');
    if (words !== null && !(words.startsWith(`w${seq}a`) && words.endsWith(`w${seq}z`)))
      throw new Broken('a quote is not what stands behind its header');
  }
  if (fences.length > 0) throw new Broken('a summary has other fences than its quotes');
  const own = new Set(heads.map(({ at }) => at));
  for (const [at, line] of lines.entries())
    for (const [, n] of line.matchAll(MARK))
      if (n !== '0' && !own.has(at)) throw new Broken('a quote is outside of its line');
}

function headsIn(lines: readonly string[]): { at: number; words: string | null }[] {
  return lines.flatMap((line, at) => {
    const found = /^\s*\[.*?\] #\d+(?: \(not trusted\))?(?: \(shortened\))?(?:$|: (.*)$)/s.exec(line);
    return found ? [{ at, words: found[1] ?? null }] : [];
  });
}

interface Context {
  facts: Played['facts'];
  keys: ReadonlyMap<string, number | null>;
  labels: Map<string, string>;
  opened: Set<string>;
}

function checkUser(content: string, seqs: readonly number[], context: Context): void {
  const regions = readFences(content, context.keys, context.opened);
  for (const region of regions) checkRegion(content, region, context);
  const bare = bareWords(content, regions, seqs, context);
  const rest = bare === null ? outside(content, 0, content.length, regions) : bare.rest;
  checkOutside(rest, regions, context);
}

/** The words of a person in a message of their own, and the message without them. */
function bareWords(
  content: string,
  regions: readonly Region[],
  seqs: readonly number[],
  context: Context,
): { rest: string } | null {
  const all = outside(content, 0, content.length, regions);
  const [first] = all.matchAll(MARK);
  if (!first) return null;
  const fact = context.facts.get(Number(first[1]));
  if (fact?.author.kind !== 'user' || seqs.length !== 1 || seqs[0] !== fact.seq)
    throw new Broken(`words of event ${first[1]} are outside of its fence`);
  const last = [...all.matchAll(MARK)].at(-1);
  const to = (last?.index ?? 0) + (last?.[0].length ?? 0);
  const words = all.slice(first.index, to);
  for (const [, n] of words.matchAll(MARK))
    if (Number(n) !== fact.seq) throw new Broken('words of two events are in one message, without a fence');
  if (words.includes(HOLE)) throw new Broken('a fence is among the words of a person');
  refuseFences(words);
  refuseHeaders(words);
  const tail = all.slice(to).replace(/^, text\/x, \d+ kB\]/, '');
  const head = all.slice(0, first.index);
  const named = /^(?:\(addressed to you earlier\)\n)?(?:\[([^[\]\n]+?)(?: -> (@[^[\]\n]+))?\] )?$/.exec(head);
  if (!named) throw new Broken(`what stands before a person's words is not ours: ${JSON.stringify(head)}`);
  if (named[1] !== undefined) checkLabel(named[1], fact.author, context.labels);
  return { rest: tail };
}

function checkRegion(content: string, { tag, seq, from, to, inner }: Region, context: Context): void {
  const own = outside(content, from, to, inner);
  if (tag === 'missed') checkOutside(own, inner, context);
  else if (inner.length > 0) throw new Broken(`a ${tag} holds a fence`);
  for (const region of inner) checkRegion(content, region, context);
  if (tag === 'missed' || tag === 'reminder') return checkWords(own, () => false);
  checkWords(own, (fact) => fact.seq === seq, context.facts);
  refuseFences(own);
}

/** Line by line: our own text, or a header followed by the fence of its author. */
function checkOutside(text: string, regions: readonly Region[], { facts, labels }: Context): void {
  const lines = text.split('\n');
  let region = 0;
  for (const [index, line] of lines.entries()) {
    if (line === HOLE) {
      const { tag, seq } = regions[region++] ?? { tag: '', seq: null };
      const before = lines[index - 1];
      if (seq !== null && (before === undefined || !HEADER.test(before)))
        throw new Broken(`a ${tag} has no header`);
      continue;
    }
    if (OURS.has(line)) continue;
    const header = HEADER.exec(line);
    const fact = facts.get(regions[region]?.seq ?? -1);
    if (!header || lines[index + 1] !== HOLE || !fact)
      throw new Broken(`outside of all fences stands what is not ours: ${JSON.stringify(line)}`);
    const speaker = header[1] ?? '';
    if (fact.kind === 'tool.result') {
      if (!/^late result of [A-Za-z0-9_.:-]{1,64}$/.test(speaker))
        throw new Broken(`a late result is said to be of ${speaker}`);
    } else checkLabel(speaker, fact.author, labels);
  }
}

function readFences(content: string, keys: Context['keys'], opened: Set<string>): Region[] {
  const top: Region[] = [];
  const open: Region[] = [];
  for (const match of content.matchAll(FENCE)) {
    const [whole, slash = '', tag = '', key = ''] = match;
    const name = `${tag}-${key}`;
    const start = match.index;
    const end = start + whole.length;
    if (!keys.has(key)) throw new Broken(`a fence that is not ours: ${whole}`);
    if (slash === '') {
      if (opened.has(name) || content[end] !== '\n')
        throw new Broken(`${whole} is opened again, or within a line`);
      opened.add(name);
      const region = { tag, seq: keys.get(key) ?? null, start, from: end + 1, to: 0, end: 0, inner: [] };
      (open.at(-1)?.inner ?? top).push(region);
      open.push(region);
      continue;
    }
    const region = open.pop();
    if (region?.tag !== tag || keys.get(key) !== region.seq || content[start - 1] !== '\n')
      throw new Broken(`${whole} closes what it has not opened`);
    region.to = start - 1;
    region.end = end;
  }
  if (open.length > 0) throw new Broken('a fence is never closed');
  return top;
}

function outside(content: string, from: number, to: number, regions: readonly Region[]): string {
  let text = '';
  let at = from;
  for (const { start, end } of regions) {
    text += content.slice(at, start) + HOLE;
    at = end;
  }
  return text + content.slice(at, to);
}

function keysOf(seqs: readonly number[]): Map<string, number | null> {
  const key = (place: string) => createHmac('sha256', SECRET).update(place).digest('hex').slice(0, 8);
  const keys = new Map<string, number | null>();
  for (const seq of seqs) {
    keys.set(key(`${seq}`), seq);
    keys.set(key(`missed ${seq}`), null);
    keys.set(key(`retry ${seq}`), null);
    keys.set(key(`live c:ada:${seq}`), null);
  }
  keys.set(key('compaction 1'), null);
  return keys;
}
