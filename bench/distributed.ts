import type { Bench } from './figures.ts';

/** The distributed mode. docs/contributing/benchmarks.md explains each figure, and which part of it belongs to the server. */
export function measureDistributed(bench: Bench): void {
  bench.heading('Distributed');
  const has = (name: string) => Boolean(process.env[name]);
  if (!has('REDIS_URL')) {
    bench.skip('no Redis. `npm run bench` starts one where it can; else set REDIS_URL');
    return;
  }
  throughput(bench);
  startLatency(bench);
  jobsAndTrips(bench);
  memory(bench);
  if (has('MONGODB_URL')) onTheServer(bench);
  else bench.skip('no MongoDB. `npm run bench` starts one where it can; else set MONGODB_URL');
}

function throughput({ heading, measure, add }: Bench): void {
  heading('Redis and a store in memory, one process, beside BullMQ alone');
  const found = measure('distributed/throughput');
  for (const [name, title, goal] of [
    ['steady', '64 clients, each waits for its turn', { atLeast: 0.5 }],
    ['pile', '64 clients that do not wait', {}],
  ] as const) {
    add(title, found[`${name}Turns`], 'turns/s');
    add('  BullMQ alone: add and process', found[`${name}Jobs`], 'jobs/s');
    add('  Troupe : BullMQ alone', found[`${name}Ratio`], 'x', goal);
    add('  processor time of Node, a turn', found[`${name}TurnNode`], 'us');
    add('  processor time of Node, a bare job', found[`${name}JobNode`], 'us');
    add('  processor time of Redis, a turn', found[`${name}TurnRedis`], 'us');
    add('  processor time of Redis, a bare job', found[`${name}JobRedis`], 'us');
  }
}

function startLatency({ heading, measure, add }: Bench): void {
  heading('From append to the start of the turn, idle, store in memory');
  const found = measure('distributed/turn-start');
  for (const [name, atMost] of [
    ['P50', 2],
    ['P99', 3],
  ] as const) {
    const raw = found[`raw${name}`] ?? Number.NaN;
    const started = found[`taken${name}`] ?? Number.NaN;
    const called = found[`called${name}`] ?? Number.NaN;
    const title = name.toLowerCase();
    add(`handed to the engine: ${title}`, started, 'ms');
    add('  BullMQ alone: from add to the processor', raw, 'ms');
    add('  Troupe : BullMQ alone', started / raw, 'x', { atMost });
    add(`the model is called: ${title}`, called, 'ms');
    add('  Troupe : BullMQ alone', called / raw, 'x');
  }
}

function jobsAndTrips({ heading, measure, add }: Bench): void {
  heading('Jobs and operations, counted');
  const hops = measure('distributed/jobs-per-hop');
  add('queue jobs per hop, two agents handing over 50 times', hops['jobsPerHop'], 'jobs', { atMost: 1 });
  const small = measure('distributed/round-trips', ['memory', '10'], { runs: 1 });
  const large = measure('distributed/round-trips', ['memory', '10000'], { runs: 1 });
  add('queue jobs per turn, one message at a time', small['jobs'], 'jobs', { atMost: 1 });
  add('store round trips of a turn with one step', small['trips'], 'trips', { atMost: 8 + 2 });
  add('  after 10,000 events', large['trips'], 'trips', { atMost: 8 + 2 });
  add('  the first one of a process in a conversation', small['firstTrips'], 'trips');
  add('  each further step', small['perStep'], 'trips', { atMost: 2 });
  add('  each tool call', small['perCall'], 'trips', { atMost: 2 });
  add('bytes handed to the store per turn, 10 events before', small['bytes'], 'B');
  add('bytes handed to the store per turn, 10,000 events before', large['bytes'], 'B');
  add('  ratio 10,000 : 10', (large['bytes'] ?? Number.NaN) / (small['bytes'] ?? Number.NaN), 'x', {
    atMost: 1.1,
  });
}

function memory({ heading, measure, add }: Bench): void {
  heading('Memory of a worker over 10,000 conversations x 3 turns, store in another process');
  const found = measure('distributed/memory', [], { runs: 1 });
  for (const [name, title] of [
    ['Before', 'before, after a warm-up of 1,000 conversations'],
    ['Garbage', 'at the end'],
    ['Warm', '  with garbage collected'],
    ['Idle', '  with garbage collected, after everything warm was dropped'],
  ] as const) {
    add(`${title}: heap`, found[`heap${name}`], 'MB');
    add(`${title}: RSS`, found[`rss${name}`], 'MB');
  }
  add('heap kept per idle conversation', found['idleKbPerConversation'], 'kB', { atMost: 0.5 });
}

function onTheServer({ heading, measure, add }: Bench): void {
  heading('On the MongoDB-protocol server: this measures mostly that server');
  const trips = measure('distributed/round-trips', ['mongodb', '10'], { runs: 1 });
  add('commands sent for a turn with one step', trips['commands'], 'commands', { atMost: 8 + 2 });
  add('  operations counted in the same run', trips['trips'], 'trips');
  add('  each further step', trips['commandsPerStep'], 'commands', { atMost: 2 });
  add('  each tool call', trips['commandsPerCall'], 'commands', { atMost: 2 });

  const bare = measure('distributed/bare-store')['turnsPerSecond'] ?? Number.NaN;
  for (const workers of [1, 2, 4]) {
    const { turnsPerSecond = Number.NaN } = measure('distributed/workers', [`${workers}`]);
    add(`${workers} worker process(es)`, turnsPerSecond, 'turns/s');
    add('  Troupe : the same operations alone', turnsPerSecond / bare, 'x');
  }
  add('the same operations alone, 16 turns at once', bare, 'turns/s');

  const fanOut = measure('distributed/fan-out');
  add('50 agents, 3 levels of tasks, 2 worker processes', fanOut['turnsPerSecond'], 'turns/s');
  add('  Troupe : the operations of plain turns alone', (fanOut['turnsPerSecond'] ?? Number.NaN) / bare, 'x');
  add('  retries per commit', fanOut['retriesPerCommit'], 'retries', { atMost: 0.1 });
  add('  turns that are missing, or too many', fanOut['unfinished'], 'turns', { atMost: 0 });

  for (const drivers of [2, 8, 32]) {
    const found = measure('distributed/appenders', [`${drivers}`]);
    add(`${drivers} appenders to one conversation`, found['appendsPerSecond'], 'events/s');
    add('  retries per append', found['retriesPerAppend'], 'retries');
    add('  most retries of one append; gives up after 100', found['mostRetries'], 'retries', { atMost: 100 });
    add('  logs with a gap or a repetition', found['brokenLogs'], 'logs', { atMost: 0 });
  }
}
