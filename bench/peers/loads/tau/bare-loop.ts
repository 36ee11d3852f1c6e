import {
  cacheRequestOf,
  cacheRules,
  type CacheRequest,
  simulateCache,
} from '../../../../src/context/cache/cache-cost.ts';
import { countTokens } from '../../../../src/context/budget/tokens.ts';
import { importedMoves, importedTurns } from '../../../../packages/evals/src/recorded-moves.ts';
import type { ConversationRun } from '../../../../packages/evals/src/index.ts';
import type { PromptMessage, ToolSpec } from '../../../../src/events/index.ts';
import { ASSISTANT } from '../../../../test/support/real-logs.ts';
import { costSum, MODEL, outputOf, readDesks } from './trajectories.ts';

/**
 * The same model calls by a loop without a framework: instructions, tools and all messages so far in each request, with
 * breakpoints behind the instructions and the last message. Priced by the same rules, and nothing is stored.
 */
const [, , , size = '0', , data = ''] = process.argv;
const rules = cacheRules('anthropic', MODEL);
const SECOND_MS = 1_000;
const sum = costSum();
let trajectories = 0;
let calls = 0;

for (const desk of await readDesks(data, Number(size))) {
  const names = new Set(desk.trajectories.flatMap((run) => importedTurns(run).calls.map(({ tool }) => tool)));
  const tools = [...names].map((name) => ({
    name,
    description: 'A tool of the trajectory.',
    parameters: { type: 'object', additionalProperties: true },
  }));
  for (const run of desk.trajectories) {
    const requests = requestsOf(run, desk.instructions, tools);
    const { total } = simulateCache(requests, rules);
    sum.add({ ...total, uncached: total.input + total.output * rules.price.output });
    trajectories += 1;
    calls += requests.length;
  }
}
console.log(JSON.stringify({ trajectories, calls, ...sum.figures() }));

function requestsOf(run: ConversationRun, instructions: string, tools: ToolSpec[]): CacheRequest[] {
  const { answers, calls: results } = importedTurns(run);
  const byTurn = [...Map.groupBy(answers, ({ turn }) => turn)];
  const said = importedMoves(run, ASSISTANT).moves.map((move) => (move.move === 'say' ? move.content : ''));
  const messages: PromptMessage[] = [{ role: 'system', content: instructions, seqs: [] }];
  const requests: CacheRequest[] = [];
  for (const [index, [turn, steps]] of byTurn.entries()) {
    messages.push({ role: 'user', content: said[index] ?? '', seqs: [] } as PromptMessage);
    const left = results.filter((result) => result.turn === turn);
    for (const step of steps) {
      const prompt = {
        conversation: run.conversation,
        agent: ASSISTANT as never,
        provider: 'custom' as never,
        model: MODEL,
        tools,
        messages: [...messages],
        breakpoints: [0, messages.length - 1],
      };
      const facts = { at: requests.length * SECOND_MS, output: outputOf(step), count: countTokens };
      requests.push(cacheRequestOf(prompt, facts));
      const { content, calls: made = [] } = step;
      messages.push({ role: 'assistant', content, calls: made, seqs: [] } as PromptMessage);
      for (const { id, name } of made) {
        const result = left.splice(0, 1)[0]?.result ?? '';
        messages.push({
          role: 'tool',
          call: id,
          name,
          content: result,
          failed: false,
          seqs: [],
        } as PromptMessage);
      }
    }
  }
  return requests;
}
