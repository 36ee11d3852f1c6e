import type { Amounts } from './measure.ts';
import { LOOK_BYTES, MEASURED } from './points.ts';

/** A line of docs/contributing/scale.md: what, how much, and the unit. */
export type Row = readonly [what: string, value: number, unit: string];

export interface Scenario {
  title: string;
  rows: Row[];
}

const DAY_S = 86_400;
const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** Assumptions, not measured. */
export const ASSUMED = {
  turnsPerConversation: 4,
  peakFactor: 3,
  /** Mostly the model's. */
  secondsPerTurn: 10,
  concurrency: 64,
} as const;

/** Of the sources: how often a worker does what, whether or not there is work. */
const SWEEP_S = 20;
const WINDOW_S = 600;
const CHECK_S = 5;
const REDIS_CONNECTIONS = 4;
const MONGO_CONNECTIONS = 64 + 3;
/** Default of the server. */
const REDIS_MAX_CLIENTS = 10_000;
/** Actors of one read. */
const ACTORS_PER_READ = 500;

function sum(amounts: Amounts, key: 'documents' | 'bytes' | 'entries'): number {
  return Object.values(amounts).reduce((total, amount) => total + amount[key], 0);
}

/** What is stored for ever, of this many conversations. */
function kept(conversations: number, key: 'documents' | 'bytes' | 'entries'): number {
  const { perConversation, perTurn } = MEASURED.mongodb;
  return conversations * (sum(perConversation, key) + ASSUMED.turnsPerConversation * sum(perTurn, key));
}

export function scenarios(): Scenario[] {
  return [busyDay(1e6), workers(10_000), idle(1e8)];
}

function busyDay(conversations: number): Scenario {
  const { commandsPerTurn } = MEASURED.mongodb;
  const turnsPerS = (conversations * ASSUMED.turnsPerConversation) / DAY_S;
  const peak = turnsPerS * ASSUMED.peakFactor;
  const atOnce = peak * ASSUMED.secondsPerTurn;
  return {
    title: '1,000,000 conversations a day',
    rows: [
      ['turns, mean', turnsPerS, '/s'],
      ['turns, at the peak', peak, '/s'],
      ['turns at once, at the peak', atOnce, ''],
      ['workers for them', Math.ceil(atOnce / ASSUMED.concurrency) + 1, ''],
      ['documents kept', kept(conversations, 'documents'), 'a day'],
      ['their bytes, before compression', kept(conversations, 'bytes') / GIB, 'GiB a day'],
      ['index entries kept', kept(conversations, 'entries'), 'a day'],
      ['Redis commands, at the peak', peak * commandsPerTurn, '/s'],
      ['events read by a round of the sweeper, at the peak', peak * WINDOW_S, ''],
    ],
  };
}

function workers(count: number): Scenario {
  return {
    title: '10,000 workers',
    rows: [
      ['turns at once', count * ASSUMED.concurrency, ''],
      ['connections to Redis', count * REDIS_CONNECTIONS, ''],
      ['workers at the default maxclients of Redis', REDIS_MAX_CLIENTS / REDIS_CONNECTIONS, ''],
      ['connections to MongoDB, at most', count * MONGO_CONNECTIONS, ''],
      ['checks of the queue, idle', count / CHECK_S, '/s'],
      ['claims of a round, on one document', count / SWEEP_S, '/s'],
    ],
  };
}

function idle(conversations: number): Scenario {
  const addressed = conversations * ASSUMED.turnsPerConversation;
  return {
    title: '100,000,000 idle conversations',
    rows: [
      ['documents', kept(conversations, 'documents'), ''],
      ['their bytes, before compression', kept(conversations, 'bytes') / GIB, 'GiB'],
      ['index entries', kept(conversations, 'entries'), ''],
      ['read by a round of the sweeper', 0, ''],
      ['read by a look at everything: events', addressed, ''],
      ['  queries for actors, at most', addressed / ACTORS_PER_READ, ''],
      ['  memory of the worker, at most', LOOK_BYTES / MIB, 'MiB'],
    ],
  };
}

/** The tables of docs/contributing/scale.md. */
export function tables(): string {
  return scenarios()
    .map(({ title, rows }) => {
      const lines = rows.map(([what, value, unit]) => `| ${what} | ${shown(value)} ${unit}`.trimEnd() + ' |');
      return [`**${title}**`, '', '| | |', '|---|---|', ...lines].join('\n');
    })
    .join('\n\n');
}

/** Three digits count; more would promise what the model does not know. */
function shown(value: number): string {
  return new Intl.NumberFormat('en', { maximumSignificantDigits: 3 }).format(value);
}
