import * as z from 'zod';
import { countTokens } from '../../src/context/budget/tokens.ts';
import { summaryRequest } from '../../src/context/summary/requests.ts';
import { eventText } from '../../src/context/text/event-text.ts';
import type { Event, EventDraft } from '../../src/events/index.ts';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { below, pick, type Random, randomOf } from '../../sim/random.ts';
import { HAS_DATA, realLogs } from '../../test/support/real-logs.ts';
import { atLeast, atMost, figure, type Figure, type Scored, Shares } from '../figure.ts';
import type { Options } from '../options.ts';

const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;
const ROOM = 'room';
const OPEN = ['approval', 'question', 'task', 'nothing'] as const;
type Open = (typeof OPEN)[number];

const lookUp = defineTool({
  name: 'look_up',
  description: 'Finds an order.',
  schema: z.object({ order: z.number() }),
  run: ({ order }) => `order ${order} was delivered broken`,
});
const refund = defineTool({
  name: 'refund',
  description: 'Pays an order back.',
  schema: z.object({ order: z.number(), euros: z.number() }),
  needsApproval: true,
  run: ({ order }) => `order ${order} is paid back`,
});

interface Scene {
  order: number;
  euros: number;
  open: Open;
  /** Messages that the receiver missed. */
  missed: number;
}

/** What is told of the open matter, and where it is from. */
const SUBJECT: Record<Open, (scene: Scene) => RegExp> = {
  approval: ({ order, euros }) => new RegExp(`approve refund.*${order}.*${euros}.*has not been made`),
  question: ({ order }) => new RegExp(`asked the people: Which account for ${order}`),
  task: ({ order }) => new RegExp(`works on a task.*Find out why ${order} broke`),
  nothing: () => /(?:)/,
};

function openingCall({ order, euros, open }: Scene): object[] {
  switch (open) {
    case 'approval':
      return [{ name: 'refund', args: { order, euros } }];
    case 'question':
      return [{ name: 'ask', args: { question: `Which account for ${order}?` } }];
    case 'task':
      return [{ name: 'delegate', args: { to: 'tester', task: `Find out why ${order} broke.` } }];
    case 'nothing':
      return [];
  }
}

function scripted(id: string, tools: string[], rules: object[]): AgentInput {
  return {
    id,
    provider: 'scripted',
    tools,
    script: { rules: [...rules, { reply: 'Noted.' }] },
  } as AgentInput;
}

/** The desk looks the order up, asks for something, and hands over with a goal that names nothing open. */
function agentsOf(scene: Scene): AgentInput[] {
  const { order } = scene;
  const over = { name: 'handoff', args: { to: 'sales', goal: `Ana gets her money for order ${order}.` } };
  const isAsked = { contains: 'My order', step: 1 };
  return [
    scripted(
      'desk',
      ['handoff', 'look_up', 'refund', 'ask', 'delegate'],
      [
        { when: isAsked, calls: [{ name: 'look_up', args: { order } }] },
        { when: { step: 2 }, reply: 'I see to it.', calls: [...openingCall(scene), over] },
      ],
    ),
    scripted('sales', ['look_up'], []),
    scripted(
      'tester',
      ['ask'],
      [{ when: { step: 1 }, calls: [{ name: 'ask', args: { question: 'Where is it?' } }] }],
    ),
  ];
}

type Way = 'troupe' | 'last messages' | 'no compaction' | "a model's summary";

/** The receiver's first prompt after the handoff, without the system text, and what others would have given it. */
async function shownIn(scene: Scene): Promise<{ texts: Record<Way, string>; result: string }> {
  const definition = { agents: agentsOf(scene), tools: [lookUp, refund] };
  await using troupe = await createTroupe(definition, { onWarning: () => {} });
  const say = async (to: string, content: string) => {
    await troupe.send(ROOM, { author: ANA, to: [to], content });
    await troupe.idle();
  };
  if (scene.missed > 0) await say('sales', 'Hello, do you sell lamps?');
  for (let n = 0; n < scene.missed; n += 1)
    await say('desk', `Note ${n}: ${'the lamp in the hall flickers in the evening '.repeat(6)}`);
  await say('desk', `My order ${scene.order} came broken.`);
  const { messages } = await troupe.promptOf(`${ROOM}:sales:${scene.missed > 0 ? 2 : 1}`);
  const { events } = await troupe.events(ROOM);
  const said = events.flatMap((event) => (event.kind === 'message' ? [eventText(event)] : []));
  const handoff = events.find(({ kind }) => kind === 'handoff');
  const result = events.find(({ kind }) => kind === 'tool.result')?.id ?? '';
  const goal = handoff?.kind === 'handoff' ? handoff.body.summary.goal : '';
  const texts = {
    troupe: messages.flatMap(({ role, content }) => (role === 'system' ? [] : [content])).join('\n'),
    'last messages': said.slice(-6).join('\n'),
    'no compaction': said.join('\n'),
    "a model's summary": `Goal: ${goal}\n${said.slice(-6).join('\n')}`,
  };
  return { texts, result };
}

/** Characters at the end of a prompt in which the goal of a handoff is read before anything else. */
const AT_THE_END = 4_000;

/** What the receiver of a handoff reads. Companies and orders are made from a seed. */
export async function scoreHandOvers({ seed, quick }: Options): Promise<Scored> {
  const random = randomOf(seed, 'hand-overs');
  const shares = new Shares();
  for (let round = 0; round < (quick ? 2 : 10); round += 1)
    for (const open of OPEN) {
      const scene: Scene = {
        order: 1_000 + below(random, 9_000),
        euros: 10 + below(random, 400),
        open,
        missed: round % 2 === 0 ? 0 : 5 + below(random, 20),
      };
      const { texts, result } = await shownIn(scene);
      for (const [way, text] of Object.entries(texts)) {
        if (open !== 'nothing')
          shares.add(`${way}: what is open is told as open`, SUBJECT[open](scene).test(text));
        else shares.add(`${way}: nothing is told as open that is not`, !text.includes('not finished yet'));
        shares.add(
          `${way}: the goal stands at the end`,
          text.slice(-AT_THE_END).includes(`money for order ${scene.order}`),
        );
        shares.add(`${way}: results can be read`, text.includes(result));
      }
    }
  const goals = [
    'what is open is told as open',
    'nothing is told as open that is not',
    'the goal stands at the end',
    'results can be read',
  ].map((what) => [`troupe: ${what}`, atLeast(1)] as const);
  return { figures: shares.figures(Object.fromEntries(goals)), violations: [] };
}

const SPEAKERS = ['Ana', 'Ben', 'Cleo'];
const WORDS =
  'the harbour office keeps its books in a drawer and counts the boats of each day before noon'.split(' ');

function dialogueOf(random: Random, length: number): Event[] {
  return Array.from({ length }, (_, n) => {
    const name = pick(random, SPEAKERS);
    const isAgent = n % 2 === 1;
    const content = Array.from({ length: 4 + below(random, 30) }, () => pick(random, WORDS)).join(' ');
    const author = isAgent
      ? { kind: 'agent', id: 'desk', name: 'desk' }
      : { kind: 'user', id: name.toLowerCase(), name };
    const draft = { id: `e${n}`, author, to: isAgent ? [] : ['desk'], kind: 'message', body: { content } };
    const place = {
      seq: n + 1,
      at: n * 90_000,
      tenant: 'default',
      conversation: 'c',
      tokens: countTokens(content),
    };
    return { ...(draft as unknown as EventDraft), ...place } as unknown as Event;
  });
}

/** Tokens of a request's words, and of all of its material: the system text is the same for every length. */
function framingOf(events: readonly Event[]): { words: number; sent: Record<string, number> } {
  const texts = events.flatMap((event) =>
    event.kind === 'message' ? [{ event, text: eventText(event) }] : [],
  );
  const { user } = summaryRequest({ previous: null, events, budgetTokens: 1_000, secret: 'score', level: 0 });
  const fenced = ({ event, text }: (typeof texts)[number]) =>
    `[${event.author.name}] #${event.seq} ${new Date(event.at).toISOString().slice(0, 16)}Z\n<transcript-0a1b2c3d>\n${text}\n</transcript-0a1b2c3d>`;
  return {
    words: texts.reduce((sum, { text }) => sum + countTokens(text), 0),
    sent: {
      troupe: countTokens(user),
      'a fence for each entry': countTokens(texts.map(fenced).join('\n')),
      'names alone': countTokens(texts.map(({ event, text }) => `${event.author.name}: ${text}`).join('\n')),
    },
  };
}

const MOST_FRAMING = 0.3;

export async function scoreSummaryRequests({ seed, quick }: Options): Promise<Scored> {
  const random = randomOf(seed, 'summary requests');
  const made = Array.from({ length: quick ? 3 : 20 }, () => dialogueOf(random, 20 + below(random, 180)));
  const real = HAS_DATA
    ? (await Promise.all(['locomo/26.json', 'locomo/30.json', 'locomo/41.json'].map(realLogs))).flat()
    : [];
  const figures: Figure[] = [];
  for (const [name, logs] of [
    ['made from the seed', made],
    ['between friends', real],
  ] as const) {
    const all = logs.map((log) => framingOf(log.slice(0, 400)));
    if (all.length === 0) continue;
    const words = all.reduce((sum, each) => sum + each.words, 0);
    for (const way of ['troupe', 'a fence for each entry', 'names alone']) {
      const sent = all.reduce((sum, each) => sum + (each.sent[way] ?? 0), 0);
      const goal = way === 'troupe' ? atMost(MOST_FRAMING) : undefined;
      figures.push(
        figure(`${way}: framing of requests, dialogues ${name}`, (sent - words) / sent, 'share', goal),
      );
    }
  }
  return { figures, violations: [] };
}
