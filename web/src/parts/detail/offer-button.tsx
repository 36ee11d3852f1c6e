import { AskFirst } from '../../shared/ask-first.tsx';
import { CommandButton } from '../../shared/command-button.tsx';
import { nameOf } from '../../state/selection.ts';
import type { Offer } from './commands.ts';

/** The button of a command. A command that removes an agent from the company asks for confirmation. */
export function OfferButton({ offer, label, class: name }: { offer: Offer; label: string; class: string }) {
  const { command } = offer;
  if (command.command !== 'retire') return <CommandButton command={command} label={label} class={name} />;
  return (
    <AskFirst
      command={command}
      label={label}
      class={name}
      question={`Retire ${nameOf(command.agent)}?`}
      effect="It begins no more turns, and messages to it wait, until someone reinstates it."
    />
  );
}
