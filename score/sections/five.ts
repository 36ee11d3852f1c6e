import { countTokens } from '../../src/context/budget/tokens.ts';
import {
  DEFAULT_POLICY,
  extractCompaction,
  scaledPolicy,
  summaryCompaction,
} from '../../src/context/index.ts';
import { renderCompaction } from '../../src/context/compaction/apply.ts';
import { eventText } from '../../src/context/text/event-text.ts';
import { peopleOf } from '../../src/context/text/people.ts';
import type { AgentId, CompactionBody, Event, EventDraft } from '../../src/events/index.ts';
import { below, pick, type Random, randomOf } from '../../sim/random.ts';
import { atLeast, figure, type Figure, type Scored } from '../figure.ts';
import type { Options } from '../options.ts';

/** What five compactions in a row leave of what was said in each part of a log that is made from a seed. */
const ROUNDS = 5;
const SECRET = 'score';
const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;
const AGENT = { kind: 'agent', id: 'assistant', name: 'assistant' } as const;
const SYLLABLES = ['ka', 'lo', 'mir', 'ten', 'vu', 'sha', 'pol', 'dri', 'qua', 'nes', 'bo', 'zel'];
const PLACES = ['harbour', 'library', 'greenhouse', 'workshop', 'archive', 'bakery', 'observatory'];
const THINGS = [
  'queue',
  'index',
  'parser',
  'ledger',
  'cache',
  'export',
  'login',
  'mailer',
  'backup',
  'report',
];

const REMARKS = [
  'The P was full of people again, and most of them came by boat.',
  'I walked past the P this morning and the lights were still on.',
  'That looks fine to me, the people at the P will be pleased with it.',
  'It rained the whole day here, so the P stayed empty.',
];
const REPLIES = [
  'I have gone through the part of the P and everything there looks as it did before, with N lines.',
  'The count of the P is in the table, next to the N of last week.',
  'That is good to hear. I continue with the part of the P now.',
];
/** Tokens of a window for each exchange of talk before what is planted. */
const FILLED = 1_000;
/** Share of a window that the newest messages have beside a compaction. */
const TAIL = 0.35;

/** Tokens of a compaction in a window of so many, and the share of what was said that is to be left at the end. */
const WINDOWS = [
  { window: 16_000, budget: 2_200, goal: 0.8 },
  { window: 8_000, budget: 1_100, goal: 0.7 },
  { window: 4_000, budget: 550, goal: 0.55 },
] as const;

type Kind = 'demand' | 'fact' | 'decision' | 'table' | 'list' | 'code';

/** Kept if at least `least` of the parts are in the text. */
interface Planted {
  kind: Kind;
  round: number;
  parts: string[];
  least: number;
}

class Talk {
  readonly parts: Event[][] = [];
  readonly planted: Planted[] = [];
  readonly #random: Random;
  readonly #filler: number;
  #seq = 0;

  constructor(random: Random, window: number) {
    this.#random = random;
    this.#filler = Math.round(window / FILLED);
    for (let round = 0; round < ROUNDS; round += 1) this.#play(round);
  }

  #play(round: number): void {
    this.parts.push([]);
    if (round === 0)
      this.#say(
        ANA,
        `Please build the ${this.#thing()} for the ${this.#place()}, and tell me what you decide.`,
      );
    const plants = [
      () => this.#demand(round),
      () => this.#fact(round),
      () => this.#decision(round),
      () => this.#fact(round),
      () => this.#table(round),
      () => this.#decision(round),
      () => this.#code(round),
      () => this.#list(round),
    ];
    for (const plant of plants) {
      this.#fill(this.#filler + below(this.#random, 3));
      plant();
    }
    this.#fill(this.#filler);
  }

  #demand(round: number): void {
    const name = this.#name();
    const text = `Never write to ${name} without asking me first.`;
    this.#say(ANA, text);
    this.#plant('demand', round, [name], 1);
  }

  #fact(round: number): void {
    const [name, number] = [this.#name(), this.#number()];
    this.#say(ANA, `The ${this.#thing()} of ${name} listens on port ${number}.`);
    this.#plant('fact', round, [`${number}`], 1);
  }

  #decision(round: number): void {
    const [name, number] = [this.#name(), this.#number()];
    this.#say(
      AGENT,
      `I have looked at both ways. I decided to use ${name} for the ${this.#thing()}, with ${number} entries at most. It is simpler to test, and nothing else has to change for it.`,
    );
    this.#plant('decision', round, [name, `${number}`], 2);
  }

  #table(round: number): void {
    const rows = Array.from({ length: 5 }, () => [this.#name(), `${this.#number()}`]);
    const lines = rows.map(([name, number]) => `| ${name} | ${number} | ok |`);
    this.#say(
      AGENT,
      ['Here are the measurements:', '', '| place | visits | state |', '|---|---|---|', ...lines].join('\n'),
    );
    this.#plant(
      'table',
      round,
      rows.map((row) => row[1] ?? ''),
      4,
    );
  }

  #list(round: number): void {
    const items = Array.from({ length: 12 }, () => `${this.#thing()} of ${this.#name()}`);
    this.#say(
      AGENT,
      ['These are the parts, in their order:', ...items.map((item, at) => `${at + 1}. the ${item}`)].join(
        '\n',
      ),
    );
    this.#plant('list', round, items, 11);
  }

  #code(round: number): void {
    const [name, number] = [this.#name(), this.#number()];
    this.#say(
      AGENT,
      [
        'This is how it is called:',
        '```ts',
        `const ${name} = open('${this.#thing()}', { retries: ${number} });`,
        `await ${name}.flush();`,
        '```',
      ].join('\n'),
    );
    this.#plant('code', round, [`const ${name}`, `retries: ${number}`], 2);
  }

  /** Talk that tells nothing which is asked for later. */
  #fill(rounds: number): void {
    for (let n = 0; n < rounds; n += 1) {
      const place = this.#place();
      this.#say(ANA, pick(this.#random, REMARKS).replace('P', place));
      this.#say(
        AGENT,
        pick(this.#random, REPLIES)
          .replace('P', place)
          .replace('N', `${100 + below(this.#random, 900)}`),
      );
    }
  }

  #say(author: typeof ANA | typeof AGENT, content: string): void {
    const seq = (this.#seq += 1);
    const draft = { kind: 'message', author, body: { content } } as unknown as EventDraft;
    const envelope = {
      id: `e${seq}`,
      to: [],
      tenant: 'default',
      conversation: 'c',
      seq,
      at: seq * 60_000,
    };
    this.parts.at(-1)?.push({ ...envelope, ...draft, tokens: countTokens(content) } as unknown as Event);
  }

  #plant(kind: Kind, round: number, parts: string[], least: number): void {
    this.planted.push({ kind, round, parts, least });
  }

  #name(): string {
    return Array.from({ length: 3 }, () => pick(this.#random, SYLLABLES)).join('');
  }

  #number(): number {
    return 10_000 + below(this.#random, 89_999);
  }

  #place(): string {
    return pick(this.#random, PLACES);
  }

  #thing(): string {
    return pick(this.#random, THINGS);
  }
}

type Way = 'troupe' | "beside a model's summary" | 'last messages';
const WAYS: readonly Way[] = ['troupe', "beside a model's summary", 'last messages'];

function shownBy(way: Way, { parts }: Talk, { window, budget }: { window: number; budget: number }): string {
  const all = parts.flat();
  if (way === 'last messages')
    return all
      .slice(cutBefore(all, window * TAIL + budget))
      .map(eventText)
      .join('\n');
  let body: CompactionBody | null = null;
  const people = peopleOf(all);
  let tail: Event[] = [];
  for (const [round, part] of parts.entries()) {
    const log = [...tail, ...part];
    const cut = cutBefore(log, window * TAIL);
    const events = log.slice(0, cut);
    tail = log.slice(cut);
    const base: Parameters<typeof extractCompaction>[0] = {
      number: round + 1,
      upTo: events.at(-1)?.seq ?? 1,
      reason: 'over_budget',
      by: 'assistant' as AgentId,
      before: Infinity,
      budget,
      events,
      previous: body,
      policy: scaledPolicy(DEFAULT_POLICY, window),
      secret: SECRET,
      people,
      count: countTokens,
      following: tail,
    };
    const text =
      '## Work\nThe assistant built what Ana asked for and counted visitors; measurements, parts and calls were told.';
    body = way === 'troupe' ? extractCompaction(base) : summaryCompaction({ ...base, text });
  }
  return [body ? renderCompaction(body, SECRET) : '', ...tail.map(eventText)].join('\n');
}

/** Where the newest messages begin that have so many tokens. */
function cutBefore(events: readonly Event[], tokens: number): number {
  let left = tokens;
  return events.findLastIndex((event) => (left -= event.tokens) < 0) + 1;
}

export async function scoreFive({ seed, quick }: Options): Promise<Scored> {
  const figures: Figure[] = [];
  for (const size of WINDOWS) {
    const talks = Array.from(
      { length: quick ? 2 : 8 },
      (_, n) => new Talk(randomOf(seed, `five ${n}`), size.window),
    );
    for (const way of WAYS) {
      const kept = new Map<string, boolean[]>();
      const add = (name: string, isKept: boolean) => kept.set(name, [...(kept.get(name) ?? []), isKept]);
      for (const talk of talks) {
        const text = shownBy(way, talk, size);
        for (const { kind, round, parts, least } of talk.planted) {
          const isKept = parts.filter((part) => text.includes(part)).length >= least;
          add('all', isKept);
          add(kind, isKept);
          if (kind === 'list' && round === ROUNDS - 1) add('the last list', isKept);
        }
      }
      const share = (name: string) => {
        const all = kept.get(name) ?? [];
        return all.filter(Boolean).length / all.length;
      };
      const at = `${size.window.toLocaleString('en')}, ${way}`;
      const goals = way === 'troupe';
      figures.push(
        figure(`${at}: kept after five`, share('all'), 'share', goals ? atLeast(size.goal) : undefined),
      );
      for (const kind of ['demand', 'fact', 'decision', 'the last list', 'table', 'list', 'code'])
        figures.push(
          figure(
            `  ${kind}`,
            share(kind),
            'share',
            goals && (kind === 'decision' || kind === 'the last list') ? atLeast(1) : undefined,
          ),
        );
    }
  }
  return { figures, violations: [] };
}
