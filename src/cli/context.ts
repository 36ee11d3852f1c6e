import { TroupeError } from '../errors.ts';
import { parseTurnId } from '../events/index.ts';
import type { CostOptions } from '../troupe.ts';
import type { Client } from './client.ts';
import { type ClientOptions, connect } from './connect.ts';
import { printJson, print } from './output.ts';
import { createProgress } from './progress.ts';
import { renderCost } from './render-cost.ts';
import { renderDiff } from './render-diff.ts';
import { renderPrompt } from './render-prompt.ts';

interface ContextOptions extends ClientOptions {
  turn?: string;
  step?: number;
  against?: string;
  cost?: boolean;
  vendor?: NonNullable<CostOptions['vendor']>;
}

/** An agent in a conversation, as named on the command line. */
interface Named {
  conversation: string;
  agent: string;
}

export async function context(conversation: string, agent: string, options: ContextOptions): Promise<void> {
  const named = { conversation, agent };
  refuseContradictions(options);
  const turn = options.turn === undefined ? undefined : turnOf(options.turn, named, 'turn');
  const against = options.against === undefined ? undefined : turnOf(options.against, named, 'against');
  const needsAgents = turn === undefined || options.cost;
  const client = await connect(options, { needs: needsAgents ? 'agents' : 'names' });
  try {
    if (options.cost) await showCost(client, named, options);
    else if (against !== undefined) {
      const { step } = options;
      const found = await client.diff(against, turn ?? 'next', step === undefined ? {} : { stepB: step });
      show(found, renderDiff, options);
    } else if (turn !== undefined) show(await client.promptOf(turn, options.step), renderPrompt, options);
    else show(await client.prompt(conversation, agent), renderPrompt, options);
  } catch (error) {
    throw withTurns(error, conversation);
  } finally {
    await client.close();
  }
}

async function showCost(
  client: Client,
  { conversation, agent }: Named,
  options: ContextOptions,
): Promise<void> {
  const progress = createProgress(`rendering again what @${agent.replace(/^@/, '')} was sent`);
  try {
    const { vendor } = options;
    show(await client.cost(conversation, agent, { vendor, onTurn: progress.tell }), renderCost, options);
  } finally {
    progress.end();
  }
}

function show<T>(found: T, render: (found: T) => string, { json }: ContextOptions): void {
  if (json) printJson(found);
  else print(render(found));
}

function refuseContradictions({ turn, step, against, cost }: ContextOptions): void {
  if (cost && (turn !== undefined || against !== undefined)) {
    throw invalid('cost', '--cost is of all turns: leave out --turn and --against');
  }
  if (step !== undefined && turn === undefined) {
    throw invalid('turn', '--step is of a past turn: name that with --turn');
  }
}

/** A bare number counts the turns of the agent in the conversation. Throws for a turn of somebody else. */
function turnOf(text: string, { conversation, agent }: Named, option: string): string {
  const name = agent.replace(/^@/, '');
  if (/^\d+$/.test(text)) return `${conversation}:${name}:${text}`;
  const parts = parseTurnId(text);
  // An agent may be named by its pubkey too, which only the troupe can resolve.
  const isOther = parts?.agent !== name && !/^[0-9a-f]{64}$/.test(name);
  if (!parts || (parts.conversation === conversation && !isOther)) return text;
  const whose = `@${parts.agent} in ${parts.conversation}`;
  throw invalid(
    option,
    `turn ${text} is of ${whose}: name one of @${name} in ${conversation}, as --${option} 1, or ask for ${whose}`,
  );
}

/** The same error, with where to look. */
function withTurns(error: unknown, conversation: string): unknown {
  if (!(error instanceof TroupeError) || error.code !== 'turn_unknown') return error;
  const message = `${error.message}; "troupe ls ${conversation}" tells the last turn of each agent`;
  return new TroupeError(error.code, message, error.data, { cause: error });
}

function invalid(path: string, message: string): TroupeError {
  return new TroupeError('event_invalid', message, { path });
}
