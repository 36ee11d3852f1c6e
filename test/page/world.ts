import * as z from 'zod';
import { systemClock, type Clock } from '../../src/base/clock.ts';
import type { Author } from '../../src/events/index.ts';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { defineProvider } from '../../src/providers/define-provider.ts';
import type { ModelEvent, ModelRequest, Provider } from '../../src/providers/provider.ts';
import { defineTool } from '../../src/tools/tool.ts';

/**
 * A forwarder's month: what an inspector is opened on. Everything is played through `Troupe`, by models that follow a script,
 * so that logs, receipts and tasks are those of the product. The same seed gives the same conversations.
 */
export interface WorldSize {
  /** Conversations of the month, before those that end open. */
  conversations: number;
  /** Agents that cannot go on, the most of one cause. */
  failures: number;
  /** Questions and approvals that are open at the end. */
  waits: number;
  /** Events of the longest conversation. */
  longest: number;
  /** Conversations of each further tenant. */
  elsewhere: number;
}

export const WHOLE_WORLD: WorldSize = {
  conversations: 9_500,
  failures: 42,
  waits: 57,
  longest: 11_626,
  elsewhere: 400,
};
export const SMALL_WORLD: WorldSize = {
  conversations: 60,
  failures: 14,
  waits: 12,
  longest: 300,
  elsewhere: 6,
};

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const MONTH_DAYS = 30;
/** A conversation more is played side by side for so many: time passes for all of them. */
const PER_PLAYER = 300;
const TOLD_EVERY = 100;

export const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana Torres' };
export const BEN: Author = { kind: 'user', id: 'ben', name: 'Ben Okafor' };
const CHEN: Author = { kind: 'user', id: 'chen', name: 'Chen Wei' };

/** Stands in the past until the world is played, and then goes on with the time of the system. */
export interface WorldClock extends Clock {
  to(at: number): void;
  pass(ms: number): void;
  /** From here on it is the clock of the system. */
  free(): void;
  /** Once it is free: it goes so much before that clock. */
  ahead(ms: number): void;
}

export function createWorldClock(): WorldClock {
  let at: number | null = Date.now() - MONTH_DAYS * DAY;
  let ahead = 0;
  return {
    ...systemClock,
    now: () => at ?? Date.now() + ahead,
    // A pause before a retry takes no time while the month is played.
    sleep: (ms, signal, purpose) =>
      systemClock.sleep(purpose === 'pause' && at !== null ? 0 : ms, signal, purpose),
    to: (time) => (at = Math.max(at ?? 0, Math.min(time, Date.now()))),
    pass: (ms) => (at = at === null ? null : at + ms),
    free: () => (at = null),
    ahead: (ms) => (ahead += ms),
  };
}

const THINKS_MS = 45;
const CHARS_PER_TOKEN = 3.6;
const CACHE_BLOCK = 128;

/** `hang`: never a word. `refuse`: the call fails for good. `busy`: it fails once. */
type Said = { text: string; calls?: { name: string; args: object }[] } | { hang: true } | Refused;
interface Refused {
  status: number;
  message: string;
  once?: boolean;
}

/** What an agent says to the last words it was sent. */
function answer(agent: string, heard: string, words: readonly string[]): Said {
  if (/<transcript-/.test(heard)) return { text: SUMMARY };
  for (const [pattern, said] of REFUSALS) if (heard.includes(pattern)) return said;
  if (/hold the line/.test(heard)) return { hang: true };
  const calls = SCRIPTS.find((each) => each.agent === agent && each.hears.test(heard))?.calls(heard);
  if (calls) return { text: '', calls };
  return { text: words[heard.length % words.length] ?? 'Noted.' };
}

const REFUSALS: readonly [string, Refused][] = [
  ['bill the customer', { status: 401, message: 'Incorrect API key provided: billing' }],
  ['write a report', { status: 402, message: 'You exceeded your current quota' }],
  ['translate the contract', { status: 400, message: 'The model "grand-translator" does not exist' }],
  ['in the rush hour', { status: 529, message: 'Overloaded', once: true }],
];

interface Script {
  agent: string;
  hears: RegExp;
  calls: (heard: string) => { name: string; args: object }[];
}

const orderIn = (heard: string) => /[A-Z]{2}-\d{4}/.exec(heard)?.[0] ?? 'NW-0001';

const SCRIPTS: readonly Script[] = [
  {
    agent: 'front',
    hears: /^(?!.*seal is missing).*customs form/s,
    calls: give('customs', 'Check the customs form of'),
  },
  {
    agent: 'front',
    hears: /^(?!.*seal is missing).*whose stamp/s,
    calls: give('billing', 'Ask for the stamp of'),
  },
  { agent: 'billing', hears: /the stamp of/, calls: give('customs', 'Please hold the line for') },
  {
    agent: 'tracker',
    hears: /^(?!.*(is at berth|not in the list)).*[A-Z]{2}-\d{4}/s,
    calls: (heard) => [{ name: 'track', args: { order: orderIn(heard) } }],
  },
  {
    agent: 'refunds',
    hears: /refund of/,
    calls: (heard) => [
      {
        name: 'refund',
        args: { order: orderIn(heard), euros: 20 + (heard.length % 40), reason: 'late by three days' },
      },
    ],
  },
  {
    agent: 'refunds',
    hears: /credit note/,
    calls: (heard) => [{ name: 'credit', args: { order: orderIn(heard), note: LONG_NOTE } }],
  },
  {
    agent: 'writer',
    hears: /letter to/,
    calls: () => [
      {
        name: 'ask',
        args: {
          question: 'Which tone should the letter have?',
          choices: ['plain', 'warm'],
          deadlineMinutes: 4_000,
        },
      },
    ],
  },
];

function give(to: string, task: string): Script['calls'] {
  return (heard) => [{ name: 'delegate', args: { to, task: `${task} ${orderIn(heard)}.` } }];
}

const LONG_NOTE = Array.from(
  { length: 14 },
  (_, n) => `Line ${n + 1}: one crate short, agreed with the carrier.`,
).join('\n');

const SUMMARY = `## Goal
The archive of the quay is indexed, ship by ship.
## Decisions
- Ledgers before 1900 come first, as Ana said.
- Damaged pages are listed, not guessed.
## Next steps
Go on with the next ledger.`;

const WORDS: Record<string, readonly string[]> = {
  front: [
    'Thank you. Your parcel left the warehouse this morning and is on its way.',
    'I have looked it up: the carrier expects to deliver it tomorrow before noon.',
    'That is noted. You will hear from us as soon as the ship has berthed.',
  ],
  tracker: ['It is at the quay and will be loaded tonight.', 'The list of the carrier does not have it yet.'],
  customs: ['The form is complete; the seal is missing on page two.'],
  refunds: ['It is paid back to the card that was used.'],
  writer: ['The letter is written and waits in the outbox.'],
  billing: ['The bill has been sent.'],
  archivist: ['Indexed. The pages 12 and 13 are damaged; I have listed them.'],
};

/** Its one provider counts and caches tokens as vendors do. */
function quay(clock: WorldClock): Provider {
  const sent = new Map<string, number>();
  const failed = new Set<string>();
  return defineProvider({
    name: 'quay',
    capabilities: { caching: 'automatic', toolCalling: true },
    async *read(request, { signal }): AsyncGenerator<ModelEvent> {
      const { agent, turn } = request.trace;
      const said = answer(agent, heardIn(request), WORDS[agent] ?? ['Noted.']);
      clock.pass(THINKS_MS);
      if ('hang' in said) {
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        return;
      }
      if ('status' in said && !(said.once && failed.has(turn))) {
        failed.add(turn);
        throw Object.assign(new Error(said.message), { status: said.status });
      }
      const { text, calls = [] } = 'status' in said ? { text: 'The rush is over: it is done.' } : said;
      if (text !== '') yield { type: 'text', delta: text };
      for (const [index, { name: tool, args }] of calls.entries())
        yield {
          type: 'call',
          call: { id: `call_${request.trace.step}_${index}`, name: tool, args: JSON.stringify(args) },
        };
      yield {
        type: 'done',
        stop: calls.length > 0 ? 'calls' : 'end',
        usage: usageOf(request, sent, text.length + JSON.stringify(calls).length),
      };
    },
  });
}

function heardIn({ messages }: ModelRequest): string {
  const last = messages.findLast(({ role }) => role === 'user' || role === 'tool');
  return JSON.stringify(last?.content ?? '');
}

/** A prompt that goes on from the one before has all of that cached; one that is shorter was begun anew. */
function usageOf({ messages, cacheKey }: ModelRequest, sent: Map<string, number>, output: number) {
  let length = 0;
  for (const message of messages) length += JSON.stringify(message).length;
  const input = Math.ceil(length / CHARS_PER_TOKEN);
  const before = sent.get(cacheKey) ?? 0;
  sent.set(cacheKey, input);
  const cacheRead = before < input ? Math.floor(before / CACHE_BLOCK) * CACHE_BLOCK : 0;
  return { input, output: Math.ceil(output / CHARS_PER_TOKEN), cacheRead, cacheWrite: 0, reasoning: 0 };
}

const BIG = { input: 3, cacheRead: 0.3, cacheWrite: 3.75, output: 15 };
const SMALL = { input: 0.4, cacheRead: 0.04, cacheWrite: 0.5, output: 1.6 };

/** Never a word, as far as people can tell. */
const SILENT = { rules: [{ reply: 'Weighed.', delayMs: 20 * DAY }] };

/** The agents of the world. The provider `scripted` has two slots. */
export function worldCompany(clock: WorldClock): TroupeInput {
  const agent = (id: string, more: object) => ({
    id,
    provider: 'custom',
    adapter: 'quay',
    model: 'quay-large',
    contextWindow: 32_000,
    maxOutputTokens: 1_000,
    price: BIG,
    ...more,
  });
  return {
    providers: { quay: quay(clock) },
    agents: [
      agent('front', {
        name: 'Front desk',
        role: 'manager',
        description: 'Answers customers and hands work on.',
        instructions: 'Answer customers in their own language.',
        tools: ['delegate'],
      }),
      agent('tracker', {
        name: 'Tracker',
        model: 'quay-small',
        price: SMALL,
        description: 'Finds parcels.',
        tools: ['track'],
      }),
      agent('refunds', { name: 'Refunds', description: 'Pays back.', tools: ['refund', 'credit'] }),
      agent('writer', {
        name: 'Writer of letters to authorities and insurers',
        description: 'Writes letters.',
        tools: ['ask'],
      }),
      agent('customs', { name: 'Customs', description: 'Knows the forms.' }),
      agent('billing', { name: 'Billing', description: 'Sends bills.', tools: ['delegate'] }),
      agent('research', {
        name: 'Research',
        model: 'quay-small',
        price: SMALL,
        description: 'Writes reports.',
      }),
      agent('translator', { name: 'Translator', description: 'Translates contracts.' }),
      agent('archivist', {
        name: 'Archivist',
        description: 'Keeps the archive.',
        contextWindow: 8_000,
        instructions: 'Index what you are given. Never guess a damaged page.',
      }),
      {
        id: 'weigher',
        provider: 'scripted',
        description: 'Weighs at the slow scales.',
        script: SILENT,
        price: SMALL,
      },
    ],
    limits: { providers: { scripted: { turns: 2 } } },
    budgets: { tenant: { usd: 400, per: 'month' }, agents: { archivist: { usd: 20, per: 'day' } } },
    tools: [trackTool, refundTool, creditTool],
  } as TroupeInput;
}

const trackTool = defineTool({
  name: 'track',
  description: 'Finds a parcel by its order.',
  schema: z.object({ order: z.string() }),
  run: ({ order }) => {
    if (order.endsWith('7')) throw new Error(`${order} is not in the list of the carrier`);
    return `${order} is at berth ${order.slice(-1)}.`;
  },
});

const refundTool = defineTool({
  name: 'refund',
  description: 'Pays money back to a customer.',
  schema: z.object({ order: z.string(), euros: z.number(), reason: z.string() }),
  needsApproval: { deadlineMs: 9 * HOUR },
  run: ({ order, euros }) => `${euros} euros are paid back for ${order}.`,
});

const creditTool = defineTool({
  name: 'credit',
  description: 'Sends a credit note.',
  schema: z.object({ order: z.string(), note: z.string() }),
  needsApproval: { by: ['ana', 'ben'] },
  run: ({ order }) => `The credit note for ${order} is sent.`,
});

/** Numbers from a seed (mulberry32). */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const FIRST = [
  'Mira',
  'Jonas',
  'Aïcha',
  'Yuki',
  'Omar',
  'Sofia',
  'Tomasz',
  'Layla',
  'Henrik',
  'Ngozi',
  'Luca',
  'דנה',
];
const LAST = [
  'Brandt',
  'García',
  'Tanaka',
  'Haddad',
  'Nowak',
  'Lindqvist',
  'Mensah',
  'Rossi',
  'Kaya',
  'O’Neill',
];
const OPENINGS = [
  'Where is my parcel',
  'Wo bleibt mein Paket',
  '¿Dónde está mi paquete',
  'Où est mon colis',
  '荷物はどこですか',
  'أين طردي',
  'היכן החבילה שלי',
  'Kargom nerede',
  'Gdzie jest moja paczka',
  'Bir haftadır bekliyorum, siparişim',
];
const FURTHER = [
  'And when will it be here?',
  'Danke. Kann ich die Adresse noch ändern?',
  'Gracias. ¿Quién firma la entrega?',
  'ありがとうございます。',
  'Is the customs duty included?',
];

type Rest = { conversation: string; author: Author; to: string; content: string };

/** One conversation, as the messages that are sent one after the other, each once the one before is answered. */
interface Story {
  at: number;
  id: string;
  says: readonly Rest[];
  /** It ends once it has so many events. */
  most?: number;
}

function storyOf(n: number, at: number, random: (below: number) => number): Story {
  const order = `NW-${String(1_000 + random(9_000))}`;
  const author: Author = {
    kind: 'user',
    id: `customer-${random(600)}`,
    name: `${FIRST[random(FIRST.length)]} ${LAST[random(LAST.length)]}`,
  };
  const id = `order-${String(n).padStart(5, '0')}`;
  const say = (to: string, content: string, by = author): Rest => ({
    conversation: id,
    author: by,
    to,
    content,
  });
  const opening = `${OPENINGS[random(OPENINGS.length)]} ${order}?`;
  const chance = random(1_000);
  const says: Rest[] = [say('front', opening)];
  if (chance < 480) {
    for (let more = random(4); more > 0; more -= 1)
      says.push(say('front', FURTHER[random(FURTHER.length)] ?? '', more % 2 === 0 ? BEN : author));
  } else if (chance < 640) says.push(say('tracker', `Please track ${order}.`, ANA));
  else if (chance < 720) says.push(say('front', `Is the customs form of ${order} in order?`));
  else if (chance < 780) says.push(say('refunds', `The customer asks for a refund of ${order}.`, BEN));
  else if (chance < 820) says.push(say('writer', `A letter to the insurer about ${order}, please.`, ANA));
  else if (chance < 870) says.push(say('front', `Is ${order} late? We are in the rush hour.`, CHEN));
  else if (chance < 876)
    for (let ledger = 0; ledger < 24; ledger += 1) says.push(say('archivist', ledgerOf(ledger), ANA));
  return { at, id, says };
}

function ledgerOf(n: number): string {
  return `Ledger ${1850 + (n % 60)}: ${'the ship, her master, the cargo and what was paid for it at the quay; '.repeat(6)}`;
}

/** Plays a world. `told` is called with the number of stories that are played. */
export async function playWorld(
  troupe: Troupe,
  clock: WorldClock,
  {
    seed = 1,
    size = WHOLE_WORLD,
    told = () => {},
  }: { seed?: number; size?: WorldSize; told?: (done: number) => void } = {},
): Promise<void> {
  const random = randomOf(seed);
  const begin = clock.now();
  const end = Date.now();
  const span = end - begin - 6 * HOUR;
  const at = (index: number, of: number) => begin + Math.floor((span * index) / of);
  const month = Array.from({ length: size.conversations }, (_, n) =>
    storyOf(n, at(n, size.conversations), random),
  );
  await Promise.all([
    playStories(troupe, clock, { stories: month, told }),
    playStories(troupe, clock, { stories: [archive(size.longest, begin + HOUR)] }),
  ]);
  for (const tenant of ['north', 'south']) {
    const stories = Array.from({ length: size.elsewhere }, (_, n) => storyOf(n, clock.now(), random));
    await playStories(troupe.forTenant(tenant), clock, { stories });
  }
  await playOpen(troupe, clock, { size, random, end });
  clock.free();
}

/** An archive that is indexed all month. A turn of it has four events or five. */
function archive(events: number, at: number): Story {
  const says = Array.from({ length: Math.ceil(events / 4) }, (_, n): Rest => {
    return { conversation: 'archive', author: ANA, to: 'archivist', content: ledgerOf(n) };
  });
  return { at, id: 'archive', says, most: events };
}

interface Stories {
  stories: readonly Story[];
  told?: (done: number) => void;
}

/** A few at once, in the order of time. */
async function playStories(troupe: Troupe, clock: WorldClock, { stories, told }: Stories): Promise<void> {
  const left = stories.values();
  let done = 0;
  const play = async () => {
    for (const story of left) {
      clock.to(story.at);
      for (const { conversation, to, ...message } of story.says) {
        // A model that fails ends the question; the log has it.
        await troupe.ask(conversation, { ...message, to: [to] }).catch(() => {});
        if (to === 'refunds' || to === 'writer') await endTasks(troupe, conversation);
        if (story.most && (await troupe.events(story.id, { limit: 1 })).head >= story.most) break;
      }
      done += 1;
      if (done % TOLD_EVERY === 0) told?.(done);
    }
  };
  await Promise.all(Array.from({ length: Math.ceil(stories.length / PER_PLAYER) }, play));
  await troupe.idle();
}

/** People answer and decide; one in five is denied. Some come too late, after the deadline. */
async function endTasks(troupe: Troupe, conversation: string): Promise<void> {
  const { tasks } = await troupe.tasks(conversation, { open: true });
  const act = (command: object, by: Author) => troupe.command(command as never, by).catch(() => {});
  for (const task of tasks) {
    if (task.kind === 'question')
      await act({ command: 'answer', conversation, question: task.id, content: 'plain' } as never, ANA);
    if (task.kind === 'approval')
      await act(
        {
          command: 'decide',
          conversation,
          request: task.id,
          argsHash: task.argsHash,
          approved: conversation.charCodeAt(conversation.length - 1) % 5 !== 0,
        },
        BEN,
      );
  }
}

interface OpenEnd {
  size: WorldSize;
  random: (below: number) => number;
  end: number;
}

/** What is open when the page is opened: failures by cause, waits for people, a chain of waits, a full provider. */
async function playOpen(troupe: Troupe, clock: WorldClock, { size, random, end }: OpenEnd): Promise<void> {
  const asked = async (ago: number, id: string, to: string, content: string) => {
    clock.to(end - ago);
    await troupe.send(id, { author: random(2) === 0 ? ANA : BEN, to: [to], content });
  };
  const order = () => `NW-${1_000 + random(9_000)}`;
  for (let n = 0; n < size.waits; n += 1) {
    const ago = 5 * HOUR - Math.floor((n * 4.5 * HOUR) / size.waits);
    if (n % 4 === 3) await asked(ago, `letter-${n}`, 'writer', `A letter to the harbour about ${order()}.`);
    else if (n % 9 === 4)
      await asked(ago, `credit-${n}`, 'refunds', `Please send a credit note for ${order()}.`);
    else await asked(ago, `refund-${n}`, 'refunds', `The customer asks for a refund of ${order()}.`);
  }
  for (let n = 0; n < size.failures; n += 1) {
    const ago = 0.4 * HOUR - n * 1_000;
    if (n % 2 === 0) await asked(ago, `bill-${n}`, 'billing', `Please bill the customer for ${order()}.`);
    else if (n % 3 === 0) await asked(ago, `report-${n}`, 'research', `Please write a report on ${order()}.`);
    else await asked(ago, `contract-${n}`, 'translator', `Please translate the contract of ${order()}.`);
  }
  await troupe.idle();
  const started = startsOf(troupe, 3);
  await asked(0.35 * HOUR, 'stamp', 'front', `We need to know whose stamp is on ${order()}.`);
  await asked(0.3 * HOUR, 'scales-1', 'weigher', 'What does the crane weigh?');
  await asked(0.29 * HOUR, 'scales-2', 'weigher', 'What does the truck weigh?');
  await started;
  for (let n = 3; n < 7; n += 1)
    await asked(0.2 * HOUR - n * 60_000, `scales-${n}`, 'weigher', 'What does the crate weigh?');
}

/** Resolves once so many turns of silent models have begun. */
function startsOf(troupe: Troupe, silent: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let left = silent;
  const off = troupe.watch((note) => {
    if (note.type !== 'event' || note.event.kind !== 'turn.started') return;
    if (!['customs', 'weigher'].includes(note.event.author.id)) return;
    left -= 1;
    if (left === 0) {
      off();
      resolve();
    }
  });
  return promise;
}

/** Keys of five kinds, by their names. */
export async function makeKeys(troupe: Troupe): Promise<Record<string, string>> {
  const kinds = [
    { name: 'everything', scopes: ['read', 'write', 'operate', 'admin', 'erase'] },
    { name: 'reader', scopes: ['read'] },
    { name: 'ben', scopes: ['read', 'write'], author: BEN },
    { name: 'refunds only', scopes: ['read', 'write', 'operate'], conversations: ['refund-*'] },
    { name: 'writes only', scopes: ['write'] },
  ] as const;
  const secrets: Record<string, string> = {};
  for (const kind of kinds) secrets[kind.name] = (await troupe.keys.create(kind as never)).secret;
  return secrets;
}
