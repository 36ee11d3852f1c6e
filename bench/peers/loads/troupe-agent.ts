import {
  createTroupe,
  defineProvider,
  type ModelRequest,
  type Tool,
  type Troupe,
  type TroupeInput,
} from '../../../src/index.ts';
import type { ModelEvent } from '../../../src/providers/provider.ts';

/** What the model does in one call: says something, and maybe calls tools. */
export interface Move {
  text: string;
  calls?: readonly { name: string; args: object }[];
}

export const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;

/** What the model does, and what it may use. */
export interface Company {
  agents: readonly string[];
  instructions: string;
  tools: readonly Tool[];
  /** Called for each model call, at once. */
  move: (request: ModelRequest) => Move;
  /** Called when an answer has been given. */
  answered?: () => void;
}

const USAGE = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** Troupe on SQLite, synced, with a model in the process; the whole history is in each prompt. */
export function openTroupe(
  dir: string,
  { agents, instructions, tools, move, answered }: Company,
): Promise<Troupe> {
  const model = defineProvider({
    name: 'fake',
    capabilities: { reportsUsage: false },
    async *read(request): AsyncGenerator<ModelEvent> {
      const { text, calls = [] } = move(request);
      if (text !== '') yield { type: 'text', delta: text };
      for (const [index, { name, args }] of calls.entries()) {
        const id = `${request.trace.turn}-${request.trace.step}-${index}`;
        yield { type: 'call', call: { id, name, args: JSON.stringify(args) } };
      }
      answered?.();
      yield { type: 'done', stop: calls.length > 0 ? 'calls' : 'end', usage: USAGE };
    },
  });
  const company = {
    agents: agents.map((id) => ({
      id,
      instructions,
      tools: tools.map(({ name }) => name),
      provider: 'custom',
      adapter: 'fake',
      model: 'fake',
      contextWindow: 10_000_000,
    })),
    tools,
    providers: { fake: model },
    limits: { maxSteps: 1_000 },
  };
  return createTroupe(company as unknown as TroupeInput, { data: `${dir}/troupe`, onWarning: stop });
}

/** A warning means that the figure would be wrong. */
function stop(error: unknown, where: string): void {
  throw new Error(where, { cause: error });
}
