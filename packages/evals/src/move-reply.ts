import {
  type Author,
  type StandardSchema,
  type ByKind,
  type Event,
  eventOf,
  forKind,
  messageText,
  type Wait,
} from './troupe.ts';
import type { UserOutcome } from './conversation-run.ts';
import type { UserMove, Seen } from './users.ts';

/** What a model may do as a person, by the word that it writes. */
const MOVES = {
  say: '"text" is what you say',
  answer: '"text" is your answer to the first question you are asked: one of its choices, if it has any',
  approve: 'the first call you are asked to approve may be made; "text" is a note, or empty',
  deny: 'the first call you are asked to approve may not be made; "text" is a note, or empty',
  wait: 'you say nothing for now; "text" is empty',
  // Small models distinguish this word best from the others.
  leave: 'you have what you want, and leave; "text" says how you know',
  give_up: 'you cannot get what you want, and leave; "text" says why',
} as const;
export type Word = keyof typeof MOVES;
/** The moves that a person may be denied. */
export type MoveName = Exclude<Word, 'leave'>;
export const ALL_MOVES: readonly MoveName[] = ['say', 'answer', 'approve', 'deny', 'wait', 'give_up'];

/** Other words that models write for these moves. */
const ALIKE: Readonly<Record<string, Word>> = {
  ask: 'say',
  reply: 'answer',
  reject: 'deny',
  done: 'leave',
  reached: 'leave',
  goal_reached: 'leave',
  gave_up: 'give_up',
};

/** The moves with their meaning, a line each. */
export function movesInWords(words: readonly Word[]): string {
  return words.map((word) => `- ${word}: ${MOVES[word]}`).join('\n');
}

const MOST_WORDS = 2_000;
/** Models are shown stricter limits than are accepted: servers' grammars cannot handle more, and people in a chat are brief. */
const SHOWN_MOST = 500;
/** Most characters of a reply in which a move is searched. */
const MOST_REPLY = 20_000;

/**
 * The schema of replies. It shows models the form of a move, but accepts any reply, even text that is not JSON. `readMove`
 * decides, so that a model is told what is wrong instead of being asked the same again.
 */
export function moveSchema(words: readonly Word[]): StandardSchema {
  const json = {
    type: 'object',
    properties: {
      move: { type: 'string', enum: words },
      text: { type: 'string', maxLength: SHOWN_MOST },
    },
    required: ['move', 'text'],
    additionalProperties: false,
  };
  const jsonSchema = { input: () => json, output: () => json };
  const standard = {
    version: 1,
    vendor: 'troupe',
    validate: (value: unknown) => ({ value }),
    jsonSchema,
  } as const;
  return { '~standard': standard };
}

/** A move, the end, or why the reply is neither. */
export type ReadMove =
  | { readonly kind: 'move'; readonly move: UserMove }
  | { readonly kind: 'end'; readonly outcome: UserOutcome }
  | { readonly kind: 'none'; readonly problem: string };

/** Reads the reply of a model: data, or text. `asked`: what the person may answer and decide now. `may`: the allowed moves. */
export function readMove(reply: unknown, by: Author, asked: Asked, may: readonly Word[]): ReadMove {
  const written = moveIn(typeof reply === 'string' ? dataIn(reply) : reply);
  if (!written) return none(`a move is JSON such as {"move": "say", "text": "Hello."}`);
  const { word, text } = written;
  if (!may.includes(word)) return none(`"${word}" is not among your moves: ${may.join(', ')}`);
  switch (word) {
    case 'say':
      return text === '' ? none('"say" needs words in "text"') : move({ move: 'say', by, content: text });
    case 'answer':
      return answer(text, by, asked);
    case 'approve':
    case 'deny':
      return decide(word, text, by, asked);
    case 'wait':
      return move({ move: 'wait' });
    case 'leave':
      return { kind: 'end', outcome: { kind: 'reached', why: text } };
    case 'give_up':
      return { kind: 'end', outcome: { kind: 'gave up', why: text } };
  }
}

function decide(word: 'approve' | 'deny', note: string, by: Author, { approvals: [call] }: Asked): ReadMove {
  if (!call) return none(`nothing waits for your approval, so "${word}" is no move`);
  return move({ move: word, by, tool: call.tool, note: note || undefined });
}

/** An answer without a question becomes a message. */
function answer(text: string, by: Author, { questions }: Asked): ReadMove {
  if (text === '') return none('"answer" needs words in "text"');
  const [asked] = questions;
  if (!asked) return move({ move: 'say', by, content: text });
  const { choices, text: question } = asked;
  const content = choices ? choiceIn(text, choices) : text;
  if (content === null)
    return none(`the choices are ${choices?.map((choice) => JSON.stringify(choice)).join(', ')}`);
  return move({ move: 'answer', by, content, question });
}

/** The choice itself, or the only choice that occurs in the text. */
function choiceIn(text: string, choices: readonly string[]): string | null {
  const said = text.toLowerCase();
  const offered = choices.filter((choice) => choice.trim() !== '');
  const exact = offered.find((choice) => choice.trim().toLowerCase() === said);
  if (exact !== undefined) return exact;
  const named = offered.filter((choice) => said.includes(choice.trim().toLowerCase()));
  return named.length === 1 ? named[0]! : null;
}

function move(made: UserMove): ReadMove {
  return { kind: 'move', move: made };
}

function none(problem: string): ReadMove {
  return { kind: 'none', problem };
}

/** Reads `{"move": "say", "text": "…"}` or `{"say": "…"}`. */
function moveIn(data: unknown): { word: Word; text: string } | null {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return null;
  const fields = data as Record<string, unknown>;
  const named = wordOf(fields['move']);
  if (named) return { word: named, text: textOf(fields['text']) };
  for (const [name, value] of Object.entries(fields)) {
    const word = wordOf(name);
    if (word && typeof value === 'string') return { word, text: textOf(value) };
  }
  return null;
}

function wordOf(value: unknown): Word | null {
  if (typeof value !== 'string') return null;
  const name = value.trim().toLowerCase().replaceAll(/[ -]/g, '_');
  if (Object.hasOwn(MOVES, name)) return name as Word;
  return Object.hasOwn(ALIKE, name) ? ALIKE[name]! : null;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.trim().slice(0, MOST_WORDS).trim().toWellFormed() : '';
}

/** The object within a text, even one that was cut off in its last string. Null if there is none. */
function dataIn(reply: string): unknown {
  const words = reply.slice(0, MOST_REPLY);
  const from = words.indexOf('{');
  if (from < 0) return null;
  return parsed(words.slice(from, words.lastIndexOf('}') + 1)) ?? fieldsIn(words.slice(from));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null; // Small models make mistakes in JSON.
  }
}

const MOVE = /"move"\s*:\s*"(\w+)"/;
const TEXT = /"text"\s*:\s*"((?:[^"\\]|\\.)*)/s;

function fieldsIn(text: string): unknown {
  const word = MOVE.exec(text)?.[1];
  if (word === undefined) return null;
  const [, written = ''] = TEXT.exec(text) ?? [];
  // A string's content is valid unless it was cut within an escape.
  return { move: word, text: parsed(`"${written.replaceAll('\n', String.raw`\n`)}"`) ?? written };
}

const MOST_TEXT = 4_000;
const MOST_ALL = 20_000;

/** The questions and approvals for somebody, oldest first. */
export interface Asked {
  questions: readonly Wait['task'][];
  approvals: readonly Wait['task'][];
}

/** The questions and approvals for this person, or for everybody. */
export function askedOf(waits: Seen['waits'], person: Author): Asked {
  const own = waits.map(({ task }) => task).filter(({ by = [] }) => isAmong(by, person));
  return {
    questions: own.filter(({ kind }) => kind === 'question'),
    approvals: own.filter(({ kind }) => kind === 'approval'),
  };
}

/**
 * The news as this person sees it, one line each: texts of people and agents in the conversation itself, and other people's
 * answers to questions that this person was asked too. Without calls, tool results, threads, and whatever the system tells an
 * agent. `own`: this person's texts that it already knows; each is left out once.
 */
export function newsFor(person: Author, { events, news }: Seen, own: string[]): string[] {
  const sight = { root: events[0]?.conversation, asked: askedBefore(events, person) };
  const lines = news.flatMap((event) => {
    const words = forKind(VISIBLE, event)?.(sight) ?? '';
    if (words === '' || isKnown(event, person, words, own)) return [];
    const isOwn = event.author.kind === 'user' && event.author.id === person.id;
    return [lineOf(isOwn ? 'You' : speaker(event.author), words)];
  });
  return newest(lines);
}

/** The requests that wait for this person, one line each. */
export function askedLines({ questions, approvals }: Asked): string[] {
  return [
    ...questions.map(({ owner, text = '', choices }) => {
      const offered = choices
        ? `\n  Choices: ${choices.map((choice) => JSON.stringify(choice)).join(', ')}`
        : '';
      return `${lineOf(`@${owner} asks you`, text)}${offered}`;
    }),
    ...approvals.map(({ owner, tool, args = '' }) =>
      lineOf(`@${owner} asks you to approve a call of ${tool}`, args),
    ),
  ];
}

interface Sight {
  root: Event['conversation'] | undefined;
  /** Ids of the questions and requests that this person was asked. */
  asked: ReadonlySet<string>;
}

type VisibleKind = 'message' | 'notice' | 'step' | 'question.answered' | 'approval.decided';

/** Text of each kind of event; empty if people see nothing of it. */
const VISIBLE: ByKind<VisibleKind, (sight: Sight) => string> = {
  message: (event) => (sight) => (isSaid(event, sight) ? messageText(event.body) : ''),
  notice: (event) => (sight) => (isSaid(event, sight) ? messageText(event.body) : ''),
  step: (event) => (sight) => (isSaid(event, sight) ? event.body.content : ''),
  'question.answered':
    ({ author, body }) =>
    ({ asked }) =>
      author.kind === 'user' && asked.has(body.question) ? body.content : '',
  'approval.decided':
    ({ author, body: { request, outcome, note } }) =>
    ({ asked }) =>
      author.kind === 'user' && asked.has(request) ? [outcome, ...(note ? [note] : [])].join(': ') : '',
};

/** Text of the system to an agent, such as a reminder, is not for people. */
function isSaid({ conversation, author }: Event, { root }: Sight): boolean {
  return conversation === root && author.kind !== 'system';
}

function askedBefore(events: readonly Event[], person: Author): Set<string> {
  const asked = new Set<string>();
  for (const event of events) {
    const question = eventOf(event, 'question')?.body;
    if (question && isAmong(question.by, person)) asked.add(question.question);
    const request = eventOf(event, 'approval.requested')?.body;
    if (request && isAmong(request.by, person)) asked.add(request.request);
  }
  return asked;
}

function isAmong(by: readonly string[], { id }: Author): boolean {
  return by.length === 0 || by.includes(id);
}

/** The person already knows what it did in a move of its own. */
function isKnown({ author, kind }: Event, person: Author, words: string, own: string[]): boolean {
  if (author.kind !== 'user' || author.id !== person.id) return false;
  if (kind !== 'message') return true;
  const at = own.indexOf(words);
  if (at >= 0) own.splice(at, 1);
  return at >= 0;
}

function speaker({ kind, id, name }: Author): string {
  return kind === 'agent' ? `@${id}` : name;
}

/** Only Troupe's lines are not indented, so nobody's text can imitate one. */
function lineOf(who: string, words: string): string {
  const text = words.length > MOST_TEXT ? `${words.slice(0, MOST_TEXT).toWellFormed()}…` : words;
  return `- ${who}: ${text.trim().replace(/[\n\r\u2028\u2029]+/g, '\n  ')}`;
}

/** Keeps the newest lines of a list that is too long. */
function newest(lines: readonly string[]): string[] {
  let left = MOST_ALL;
  let first = lines.length;
  while (first > 0 && (left -= lines[first - 1]!.length) >= 0) first -= 1;
  return first === 0 ? [...lines] : [`- (${first} earlier lines are left out)`, ...lines.slice(first)];
}
