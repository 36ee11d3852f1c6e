import type { Bench } from './figures.ts';

/**
 * One process on SQLite. The model answers at once, so the figures are Troupe's alone: durable, with the whole
 * history in the prompt.
 */
export function measureEmbedded({ heading, measure, add }: Bench): void {
  heading('Embedded: one process on SQLite');
  const small = measure('turn-latency', ['10']);
  const large = measure('turn-latency', ['10000']);
  const bareSmall = measure('bare-sqlite-latency', ['10']);
  const bareLarge = measure('bare-sqlite-latency', ['10000']);
  const arrayLarge = measure('bare-array', ['10000']);
  const p50 = { small: small['p50'] ?? Number.NaN, large: large['p50'] ?? Number.NaN };
  add('turn, 10 events before: p50', p50.small, 'ms', { atMost: 2 });
  add('turn, 10,000 events before: p50', p50.large, 'ms', { atMost: 3 });
  add('  ratio 10,000 : 10', p50.large / p50.small, 'x', { atMost: 1.5 });
  add('  p99 : p50 at 10', (small['p99'] ?? Number.NaN) / p50.small, 'x', { atMost: 4 });
  add('  p99 : p50 at 10,000', (large['p99'] ?? Number.NaN) / p50.large, 'x', { atMost: 4 });
  add('  bare SQLite loop at 10', bareSmall['p50'], 'ms');
  add('  bare SQLite loop at 10,000', bareLarge['p50'], 'ms');
  add('  bare message array at 10,000', arrayLarge['p50'], 'ms');
  add('  Troupe : bare SQLite at 10', p50.small / (bareSmall['p50'] ?? Number.NaN), 'x');
  add('  Troupe : bare SQLite at 10,000', p50.large / (bareLarge['p50'] ?? Number.NaN), 'x');

  const storedSmall = measure('storage', ['10']);
  const storedLarge = measure('storage', ['10000']);
  add('stored per turn, 10 events before', storedSmall['bytesPerTurn'], 'B', { atMost: 4_000 });
  add('stored per turn, 10,000 events before', storedLarge['bytesPerTurn'], 'B', { atMost: 4_000 });
  add('memory growth over 60 turns at 10,000 events', storedLarge['rssGrowthMb'], 'MB', { atMost: 10 });

  const throughput = measure('throughput');
  const bareThroughput = measure('bare-throughput');
  add('1,000 conversations x 3 turns, 64 at once', throughput['turnsPerSecond'], 'turns/s', {
    atLeast: 3_000,
  });
  add('  bare SQLite loop', bareThroughput['turnsPerSecond'], 'turns/s');

  const append = measure('append');
  add('appends, many at once', append['together'], 'events/s', { atLeast: 5_000 });
  add('appends, one after the other', append['oneByOne'], 'events/s');
  add('  bare SQLite loop', append['bareOneByOne'], 'events/s');

  const company = measure('company');
  add('1,000 agents in one conversation: answered', company['answered'], 'agents', { atLeast: 1_000 });
  add('  time', company['seconds'], 's');

  const memory = measure('idle-memory');
  add('heap per warm actor', memory['warmKbPerActor'], 'kB');
  add('heap per idle actor', memory['idleKbPerActor'], 'kB', { atMost: 0.5 });

  const rally = measure('handoffs');
  add('two agents handing over for 50 turns: turns', rally['turns'], 'turns', { atLeast: 50 });
  add('  model calls', rally['calls'], 'calls', { atMost: 50 });
  add('  events twice in a prompt', rally['eventsTwice'], 'events', { atMost: 0 });

  const first = measure('first-turn', ['10']);
  const firstLarge = measure('first-turn', ['10000']);
  const firstShort = measure('first-turn', ['10', 'checkpoint']);
  const firstStored = measure('first-turn', ['10000', 'checkpoint']);
  const over = (one: Record<string, number>, other: Record<string, number>, figure: string) =>
    (one[figure] ?? Number.NaN) - (other[figure] ?? Number.NaN);
  add('first turn of a process, 10 messages imported', first['firstTurnMs'], 'ms');
  add('first turn of a process, 10,000 messages imported', firstLarge['firstTurnMs'], 'ms', { atMost: 250 });
  add('  processor time at 10', first['cpuMs'], 'ms');
  add('  processor time at 10,000', firstLarge['cpuMs'], 'ms');
  add(
    '  with a checkpoint and a window of 128k: over one at 10',
    over(firstStored, firstShort, 'firstTurnMs'),
    'ms',
    {
      atMost: 15,
    },
  );
  add('  processor time over one at 10', over(firstStored, firstShort, 'cpuMs'), 'ms');
  add('a company loaded and idle, after its first turn: RSS', first['rssMb'], 'MB', { atMost: 140 });
  add('  before anything was loaded', first['bareRssMb'], 'MB');

  const cold = measure('cold-start');
  add('troupe dev: ready', cold['readyMs'], 'ms');
  add('troupe dev: first prompt built', cold['firstPromptMs'], 'ms', { atMost: 1_500 });
}
