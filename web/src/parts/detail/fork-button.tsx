import type { TurnId } from '../../../../src/events/index.ts';
import { CommandButton } from '../../shared/command-button.tsx';
import { go } from '../../state/route.ts';

/** Forks a new conversation from everything before this turn's first input. The original stays unchanged, so nothing is asked first. */
export function ForkButton({ turn }: { turn: TurnId }) {
  return (
    <CommandButton
      command={{ command: 'fork', turn }}
      label="Fork"
      hint="A new conversation with a copy of everything before this turn; this one stays as it is"
      onAccepted={({ event }) => {
        const fork = event.kind === 'command' ? (event.body.fork?.conversation ?? event.conversation) : null;
        if (fork !== null)
          go({ conversation: fork, turn: null, agent: null, event: null, at: null, vs: null });
      }}
    />
  );
}
