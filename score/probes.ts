import { eventText } from '../src/context/text/event-text.ts';
import type { Event } from '../src/events/index.ts';

/**
 * What a reader of a log may be asked later, as literal strings. Written from the definitions and independent of
 * `src/context/extract`, with the simplest pattern for each, so that the score is not true by construction:
 * paths        a name with an extension after at least one slash, anywhere, unless it is relative to another file
 * identifiers  ids and codes anywhere; names in backticks, camelCase and snake_case in messages
 * errors       the first line of a failed result that states it; elsewhere lines that begin with an error; not if the
 *              same tool has succeeded last
 * constraints  where an agent works, sentences of people with must, never, do not, only, always, prefer, or a prohibition
 * pending      open boxes and to-dos, sentences about next or remaining steps, the last question
 *
 * Of paths and identifiers those count that were used: at least two events name them, and not only results of tools.
 * What a tool printed once can be printed again.
 */
export const PROBE_KINDS = ['paths', 'identifiers', 'errors', 'constraints', 'pending'] as const;
export type ProbeKind = (typeof PROBE_KINDS)[number];
export type Probes = Record<ProbeKind, string[]>;

const PATH = /(?:~|\.{1,2})?(?:\/?[\w@.+-]+\/)+[\w@.+-]+\.[A-Za-z]{1,5}\b/g;
const URL = /\w+:\/\/\S+/g;
const IDS = [
  /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi,
  /\b[0-9A-HJKMNP-TV-Z]{26}\b/g,
  /\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b/g,
  /#?\b[A-Z]\d{6,}\b/g,
  /\b[A-Z]{2,8}-\d+\b/g,
  /\b[A-Z]{3}\d{3}\b/g,
  /\b\d{7,}\b/g,
  /\b[a-z]+(?:_[a-z]+)*_\d{3,}\b/g,
  /\b[\w.]+@[\w-]+\.[a-z]{2,}\b/g,
];
const ID_FIELD = /"\w*_id": ?"([^"\s]+)"/g;
const NAMES = [/\b[a-z]+(?:[A-Z][a-z0-9]+)+\b/g, /\b(?:[A-Z][a-z0-9]+){2,}\b/g, /\b[a-z]+(?:_[a-z0-9]+)+\b/g];
const BACKTICKS = /`([A-Za-z_][\w.]*(?:\(\))?)`/g;
const CONSTRAINT =
  /\b(?:must|never|do not|only|always|prefer|make sure)\b|(?:^|please |[,;:] )(?:don['’]t|no more|stop) /i;
const PENDING =
  /\bTODO\b|\b(?:next,? (?:I|we)|(?:I|we) will next|still (?:need|have) to|still to do|next steps?)\b/;
const FAILURE = /error|fail|no such|not found|denied|exited|aborted/i;
const ERROR_START = /^(?:\w+\.)*(?:[A-Z]\w*)?(?:Error|Exception): \S/;

export function findProbes(log: readonly Event[]): Probes {
  const spoken = log.filter(({ kind }) => kind === 'message' || kind === 'step');
  const words = spoken.map((event) => ({ event, text: wordsOf(event) }));
  const everything = log.map(plainText).join('\n');
  const withoutUrls = everything.replaceAll(URL, ' ');
  const said = words.map(({ text }) => text).join('\n');
  const saidWithoutUrls = said.replaceAll(URL, ' ').replaceAll(PATH, ' ');
  const texts = log.map((event) => ({ text: plainText(event), isResult: event.kind === 'tool.result' }));
  const isUsed = (name: string) => {
    const named = texts.filter(({ text }) => text.includes(name));
    return named.length > 1 && named.some(({ isResult }) => !isResult);
  };
  // Friends who talk demand nothing of an agent, whatever words they use.
  const isWork = log.some(({ kind }) => kind === 'step');
  return {
    paths: distinct(all(withoutUrls, [PATH]).filter((path) => !/^\.{1,2}\//.test(path))).filter(isUsed),
    identifiers: distinct([
      ...all(withoutUrls.replaceAll(PATH, ' '), IDS),
      ...groups(everything, ID_FIELD),
      ...all(saidWithoutUrls, NAMES),
      ...groups(said, BACKTICKS),
    ]).filter(isUsed),
    errors: distinct(unsettled(log).flatMap(errorsOf)),
    constraints: distinct(
      words
        .filter(({ event }) => isWork && event.author.kind === 'user')
        .flatMap(({ text }) => sentences(text).filter((sentence) => CONSTRAINT.test(sentence))),
    ),
    pending: distinct([
      ...words.flatMap(({ text }) => [...boxes(text), ...sentences(text).filter((one) => PENDING.test(one))]),
      ...log.flatMap(todos),
      ...lastQuestion(words.at(-1)?.text ?? ''),
    ]),
  };
}

function wordsOf(event: Event): string {
  return event.kind === 'message' || event.kind === 'step' ? event.body.content : '';
}

/** Arguments without JSON escapes, or the letter of an escaped line end would join the next word. */
function plainText(event: Event): string {
  return eventText(event).replaceAll('\\n', '\n').replaceAll('\\t', '\t').replaceAll('\\"', '"');
}

function all(text: string, patterns: readonly RegExp[]): string[] {
  return patterns.flatMap((pattern) => text.match(pattern) ?? []);
}

function groups(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, group = '']) => group);
}

function sentences(text: string): string[] {
  return text
    .split(/(?<=[.!?])\s+|\n/)
    .map((line) => line.replace(/^\s*(?:[-*]|\d+\.)\s+/, '').trim())
    .filter((line) => line.length > 3 && line.length <= 300);
}

function boxes(text: string): string[] {
  return groups(text, /^\s*[-*] \[ \] (.+)$/gm).map((item) => item.trim());
}

function todos(event: Event): string[] {
  if (event.kind !== 'step') return [];
  return event.body.calls
    .filter(({ name }) => /todo/i.test(name))
    .flatMap(({ args }) => groups(args, /"content": ?"([^"\\]+)", ?"status": ?"(?:pending|in_progress)"/g));
}

function lastQuestion(text: string): string[] {
  return sentences(text)
    .filter((sentence) => sentence.endsWith('?'))
    .slice(-1);
}

function errorsOf(event: Event): string[] {
  if (event.kind !== 'tool.result') return [];
  const lines = event.body.content
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.length < 200);
  const begun = lines.filter((line) => ERROR_START.test(line));
  const failed = event.body.outcome === 'done' ? [] : lines.filter((line) => FAILURE.test(line)).slice(0, 1);
  return [...begun, ...failed];
}

/** The events without results of tools whose last result reports no error. */
function unsettled(log: readonly Event[]): Event[] {
  const last = new Map<string, Event>();
  for (const event of log) if (event.kind === 'tool.result') last.set(event.body.name, event);
  const failing = new Set([...last].filter(([, event]) => errorsOf(event).length > 0).map(([name]) => name));
  return log.filter((event) => event.kind !== 'tool.result' || failing.has(event.body.name));
}

function distinct(strings: readonly string[]): string[] {
  return [...new Set(strings.filter((text) => text.length > 2))];
}
