import { defineTool, type Provider, type Troupe, type TroupeInput } from '../../../../src/index.ts';
import { openTroupe } from '../../../../src/library/runtime/create-troupe.ts';
import { readRun, recordedModels, recordedTools } from '../../../../packages/evals/src/index.ts';
import { type RecordedTest, recordTest } from '../../../../packages/evals/src/record-test.ts';
import type { Recording } from '../../../../packages/evals/src/recording.ts';
import { type Event, eventOf, NO_USAGE, parseTurnId } from '../../../../src/events/index.ts';
import { checkLog } from '../../../../packages/testing/src/check-log.ts';
import { ASSISTANT } from '../../../../test/support/real-logs.ts';
import { costSum, type Desk, MODEL, outputOf, readDesks } from './trajectories.ts';

/**
 * Each trajectory is imported, made into a recording and played again on SQLite: models answer as they did, tools return what
 * they returned. A word that differs ends the play. In mode `three`, three agents share each conversation and answer by turns.
 */
const [, , mode, size = '0', dir = '', data = ''] = process.argv;
const AGENTS = mode === 'three' ? [ASSISTANT, 'second', 'third'] : [ASSISTANT];
const sum = costSum();
const SILENT = { provider: 'scripted', script: { rules: [] } };
const count = { trajectories: 0, calls: 0, events: 0, violations: 0, verified: 0 };

for (const [index, desk] of (await readDesks(data, Number(size))).entries()) {
  const tests: RecordedTest[] = [];
  for (const trajectory of desk.trajectories)
    tests.push(shared(await recordTest(trajectory, companyOf(desk, SILENT))));
  await using troupe = await openTroupe(played(desk, tests), {
    data: `${dir}/${index}`,
    onWarning: stop,
    constants: { limits: { maxRepeats: 10_000 } },
  });
  for (const test of tests) {
    await play(troupe, test);
    if (count.trajectories % 50 === 0) console.error(`tau troupe ${mode}: ${count.trajectories} played`);
  }
}
const verified = (100 * count.verified) / count.calls;
console.log(JSON.stringify({ ...count, verified, ...sum.figures() }));
process.exit(0);

function companyOf({ instructions }: Desk, model: object): TroupeInput {
  const agents = AGENTS.map((id) => ({ id, instructions, ...model }));
  return { agents, defaults: { respondWhenUnaddressed: ASSISTANT } } as unknown as TroupeInput;
}

/** Turns of the assistant, dealt among the agents. */
function shared({ recording, ...test }: RecordedTest): RecordedTest {
  const { conversation, answers, calls } = recording;
  const dealt = <T extends { turn: string }>(each: T): T => {
    const number = (parseTurnId(each.turn)?.number ?? 1) - 1;
    return { ...each, turn: `${conversation}:${agentOf(number)}:${Math.floor(number / AGENTS.length) + 1}` };
  };
  return { ...test, recording: { ...recording, answers: answers.map(dealt), calls: calls.map(dealt) } };
}

/** Who answers the message of this number, from 0. */
function agentOf(message: number): string {
  return AGENTS[message % AGENTS.length] ?? ASSISTANT;
}

/** The company whose model and tools are the recordings. */
function played(desk: Desk, tests: readonly RecordedTest[]): TroupeInput {
  const answers = tests.flatMap(({ recording }) => recording.answers);
  const calls = tests.flatMap(({ recording }) => recording.calls);
  const { '*': answer } = recordedTools({ calls });
  const names = new Set(tests.flatMap(({ recording }) => Object.keys(recording.standIns)));
  const tools = [...names].map((name) =>
    defineTool({
      name,
      description: 'A tool of the trajectory.',
      schema: { type: 'object', additionalProperties: true },
      bounded: true,
      run: (args, context) =>
        typeof answer === 'string' ? answer : answer(args as Record<string, unknown>, context, name),
    }),
  );
  const model = {
    provider: 'custom',
    adapter: 'recorded',
    model: MODEL,
    contextWindow: 10_000_000,
    tools: [...names],
  };
  const limits = { maxSteps: 10_000 };
  const providers = { recorded: withUsage(answers) };
  return { ...companyOf(desk, model), tools, limits, providers } as TroupeInput;
}

/** The recorded models report no tokens. The price of an answer is that of its own. */
function withUsage(answers: Recording['answers']): Provider {
  const { '*': recorded } = recordedModels({ answers });
  const tokens = new Map(answers.map((answer) => [`${answer.turn} ${answer.step}`, outputOf(answer)]));
  return {
    ...recorded,
    async *stream(request, signal) {
      const { turn, step } = request.trace;
      const usage = { ...NO_USAGE, output: tokens.get(`${turn} ${step}`) ?? 0 };
      for await (const event of recorded.stream(request, signal))
        yield event.type === 'done' ? { ...event, usage } : event;
    },
  };
}

async function play(troupe: Troupe, { recording, moves, run }: RecordedTest): Promise<void> {
  const { conversation } = recording;
  for (const [index, move] of moves.entries()) {
    if (move.move !== 'say') throw new Error(`${conversation} has a move of another kind: ${move.move}`);
    await troupe.ask(conversation, { author: move.by, to: [agentOf(index)], content: move.content } as never);
  }
  const { events } = await readRun(troupe, conversation, { prompts: false });
  const words = (log: readonly Event[]) =>
    log.map((event) => eventOf(event, 'message')?.body.content ?? '').join('');
  if (words(events) !== words(run.events)) throw new Error(`${conversation} was played with other words`);
  for (const agent of AGENTS.slice(0, moves.length)) {
    const { rows, total } = await troupe.cacheCost(conversation, agent, { vendor: 'anthropic' });
    sum.add(total);
    count.calls += rows.length;
    count.verified += rows.filter((row) => row.verified).length;
  }
  count.trajectories += 1;
  count.events += events.length;
  count.violations += checkLog(events, []).length;
}

/** A warning means that the figures would be wrong. */
function stop(error: unknown, where: string): void {
  throw new Error(where, { cause: error });
}
