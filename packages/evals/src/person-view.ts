import { type Author, type ByKind, type Event, eventOf, forKind, messageText, type Wait } from './troupe.ts';
import type { Seen } from './user.ts';

const MOST_TEXT = 4_000;
const MOST_ALL = 20_000;

/** What is asked of somebody, the oldest first. */
export interface Asked {
  questions: readonly Wait['task'][];
  approvals: readonly Wait['task'][];
}

/** What is asked of this person, or of everybody. */
export function askedOf(waits: Seen['waits'], person: Author): Asked {
  const own = waits.map(({ task }) => task).filter(({ by = [] }) => isAmong(by, person));
  return {
    questions: own.filter(({ kind }) => kind === 'question'),
    approvals: own.filter(({ kind }) => kind === 'approval'),
  };
}

/**
 * The news as this person sees them, a line each: the words of people and agents in the conversation itself, and what others
 * answered where this person was asked too. No calls, no results of tools, no threads, and nothing that the system tells an agent.
 * `own`: words of this person that it knows already; each is left out once.
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

/** The requests that wait for this person, a line each. */
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
  /** The conversation itself. */
  root: Event['conversation'] | undefined;
  /** Ids of the questions and requests that this person was asked. */
  asked: ReadonlySet<string>;
}

type VisibleKind = 'message' | 'notice' | 'step' | 'question.answered' | 'approval.decided';

/** Empty: nothing that people see. */
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

/** What the system writes to an agent, such as a reminder, is not for people. */
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

/** What the person did in a move of its own needs no telling. */
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

/** Only Troupe's lines begin at the margin: nobody's words can pass for one. */
function lineOf(who: string, words: string): string {
  const text = words.length > MOST_TEXT ? `${words.slice(0, MOST_TEXT).toWellFormed()}…` : words;
  return `- ${who}: ${text.trim().replace(/[\n\r\u2028\u2029]+/g, '\n  ')}`;
}

/** The end of what is too long. */
function newest(lines: readonly string[]): string[] {
  let left = MOST_ALL;
  let first = lines.length;
  while (first > 0 && (left -= lines[first - 1]!.length) >= 0) first -= 1;
  return first === 0 ? [...lines] : [`- (${first} earlier lines are left out)`, ...lines.slice(first)];
}
