import type { PageStage } from './stage.ts';

/** A text that occurs once, in the middle, for a search to find. */
export const NEEDLE = 'the albatross came back';

/**
 * A log of at least this many events: an imported transcript of an agent that makes many calls. It is imported because
 * playing the turns would take minutes.
 */
export async function importLongLog(stage: PageStage, id: string, events: number): Promise<void> {
  await stage.troupe.import(transcript(events), { conversation: id, agent: 'researcher', format: 'openai' });
}

async function* transcript(events: number): AsyncGenerator<string> {
  // A round is four events: a question, a step with its call, the result, an answer.
  const rounds = Math.ceil(events / 4);
  yield '{"messages":[';
  for (let n = 1; n <= rounds; n++) {
    const messages = roundOf(n, n === Math.floor(rounds / 2)).map((message) => JSON.stringify(message));
    yield `${n === 1 ? '' : ','}${messages.join(',')}`;
  }
  yield ']}';
}

function roundOf(n: number, hasNeedle: boolean): object[] {
  const call = `call_${n}`;
  return [
    { role: 'user', content: `Question ${n}: which ship lies at berth ${n % 23}?` },
    {
      role: 'assistant',
      content: `Looking up berth ${n % 23}.`,
      tool_calls: [
        {
          id: call,
          type: 'function',
          function: { name: 'search', arguments: `{"query":"berth ${n % 23}"}` },
        },
      ],
    },
    { role: 'tool', tool_call_id: call, content: `berth ${n % 23}: the ship number ${n * 13}` },
    { role: 'assistant', content: hasNeedle ? `At noon ${NEEDLE}.` : `Ship number ${n * 13} lies there.` },
  ];
}
