import { trace } from '@opentelemetry/api';
import { BasicTracerProvider, NoopSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { createMetrics } from '../src/http/metrics.ts';
import { createTroupe, type Troupe, type TroupeOptions } from '../src/index.ts';
import { createJsonLogger } from '../src/library/runtime/json-logger.ts';
import { ANA, ONE_AGENT, percentile, report, stop, turnWatcher } from './support.ts';

/**
 * Cost of observability per turn of a model that answers at once: CPU time of this process, each setting in turn,
 * round after round. The SDK makes and drops every span; log lines are made and dropped: sending is the exporter's
 * cost.
 */
const ROUNDS = 12;
const TURNS = 30;

trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new NoopSpanProcessor()] }));
const metrics = createMetrics({ version: 'bench' });
const logger = createJsonLogger('info', { write: () => {} });
const WAYS: Record<string, TroupeOptions> = {
  nothing: {},
  metrics: { metrics },
  lines: { metrics, logger },
  traces: { metrics, tracing: true },
  all: { metrics, logger, tracing: true },
};

const troupes: [string, Runner, number[]][] = [];
for (const [way, options] of Object.entries(WAYS)) {
  const troupe = await createTroupe(ONE_AGENT, { onWarning: stop, ...options });
  troupes.push([way, { troupe, ended: turnWatcher(troupe) }, []]);
}
for (let round = -3; round < ROUNDS; round++) {
  // The order changes: the first setting pays for what the last one left behind.
  const turned = [
    ...troupes.slice(Math.abs(round) % troupes.length),
    ...troupes.slice(0, Math.abs(round) % troupes.length),
  ];
  for (const [, runner, costs] of turned) {
    const cost = await measure(runner, `round${round}`);
    if (round >= 0) costs.push(cost);
  }
}
const figures = Object.fromEntries(troupes.map(([way, , costs]) => [way, percentile(costs, 0.5)]));
for (const [, { troupe }] of troupes) await troupe.close();
report(Object.fromEntries(Object.entries(figures).map(([way, us]) => [`${way}Us`, Math.round(us)])));

interface Runner {
  troupe: Troupe;
  ended: (conversation: string) => Promise<void>;
}

/** Microseconds of CPU per turn. Conversations are new, so that all rounds have prompts of the same length. */
async function measure({ troupe, ended }: Runner, conversation: string): Promise<number> {
  const before = process.cpuUsage();
  for (let turn = 0; turn < TURNS; turn++) {
    const place = `${conversation}.${turn % 10}`;
    const done = ended(place);
    await troupe.send(place, { author: ANA, content: `note ${turn}` });
    await done;
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / TURNS;
}
