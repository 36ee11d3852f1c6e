import { TroupeError } from '../errors.ts';
import { type ClientOptions, connect } from './connect.ts';
import { printJson, print } from './output.ts';
import { renderPrompt } from './render-prompt.ts';

interface ContextOptions extends ClientOptions {
  turn?: string;
  step?: number;
}

export async function context(conversation: string, agent: string, options: ContextOptions): Promise<void> {
  const { turn, step, json } = options;
  if (step !== undefined && turn === undefined) {
    throw new TroupeError('event_invalid', '--step is of a past turn: name that with --turn', {
      path: 'turn',
    });
  }
  const client = await connect(options, { needs: turn === undefined ? 'agents' : 'names' });
  try {
    const prompt =
      turn === undefined
        ? await client.prompt(conversation, agent)
        : await client.promptOf(turnIn(turn, conversation, agent), step);
    if (json) printJson(prompt);
    else print(renderPrompt(prompt));
  } finally {
    await client.close();
  }
}

/** A bare number counts the turns of the agent in the conversation. */
function turnIn(turn: string, conversation: string, agent: string): string {
  return /^\d+$/.test(turn) ? `${conversation}:${agent.replace(/^@/, '')}:${turn}` : turn;
}
