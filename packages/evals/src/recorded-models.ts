import { NO_USAGE } from './conversation-run.ts';
import type { ModelEvent, Provider } from './troupe.ts';
import { refusal } from './refusal.ts';
import type { RecordedAnswer, Recording } from './recording.ts';

/**
 * Models that answer as they did: for `models` of `playConversation`. An answer belongs to a step of a turn, whatever the
 * prompt is; a step that was not recorded fails its turn. No vendor is asked, and no key is needed.
 */
export function recordedModels({ answers }: Pick<Recording, 'answers'>): Record<'*', Provider> {
  const byPlace = new Map(answers.map((answer) => [`${answer.turn} ${answer.step}`, answer]));
  async function* stream({ trace }: Parameters<Provider['stream']>[0]): AsyncGenerator<ModelEvent> {
    yield { type: 'start' };
    const { agent, turn, step, purpose } = trace;
    const answer = purpose === undefined ? byPlace.get(`${turn} ${step}`) : undefined;
    const what = purpose === undefined ? `step ${step} of ${turn}` : `a ${purpose} in ${turn}`;
    yield* answer ? eventsOf(answer) : [failure(refusal(`an answer of @${agent} for ${what}`))];
  }
  return { '*': { name: 'recorded', capabilities: CAPABILITIES, stream } };
}

const CAPABILITIES: Provider['capabilities'] = {
  sessionResumption: false,
  rewind: false,
  fork: false,
  interleavedSystem: true,
  toolCalling: true,
  images: true,
  caching: 'automatic',
  reportsUsage: false,
};

function eventsOf({ content, calls = [], failed }: RecordedAnswer): ModelEvent[] {
  const said: ModelEvent[] = content === '' ? [] : [{ type: 'text', delta: content }];
  if (failed !== undefined) return [...said, failure(failed)];
  return [
    ...said,
    ...calls.map((call): ModelEvent => ({ type: 'call', call })),
    { type: 'done', stop: calls.length > 0 ? 'calls' : 'end', usage: NO_USAGE },
  ];
}

/** A code that is not tried again: pauses between tries take real time. */
function failure(message: string): ModelEvent {
  return { type: 'failed', error: { code: 'provider_refused', message } };
}
