import type { TurnId } from '../../../../src/events/index.ts';
import { AskFirst } from '../../shared/ask-first.tsx';
import { go } from '../../state/route.ts';

/** Forks a new conversation from everything before this turn's first input. The original stays unchanged. */
export function ForkButton({ turn }: { turn: TurnId }) {
  return (
    <AskFirst
      command={{ command: 'fork', turn }}
      label="Fork"
      question="Start a new conversation?"
      effect="It begins with a copy of everything before this turn. This conversation stays as it is."
      onAccepted={({ event }) => {
        const fork = event.kind === 'command' ? (event.body.fork?.conversation ?? event.conversation) : null;
        if (fork !== null)
          go({ conversation: fork, turn: null, agent: null, event: null, at: null, vs: null });
      }}
    />
  );
}
