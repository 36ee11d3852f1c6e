import { Go } from '../../shared/go.tsx';
import { hovered, hovers } from '../../state/hovered.ts';

interface EventLinkProps {
  seq: number;
  label?: string;
  title?: string;
}

/** A link to one event. Hovering over it highlights the event everywhere else. */
export function EventLink({ seq, label = `#${seq}`, title = `Event ${seq}` }: EventLinkProps) {
  return (
    <span class={`event-link ${hovered.value === seq ? 'event-hovered' : ''}`} {...hovers(seq)}>
      <Go to={{ event: seq, tab: 'events' }} title={title}>
        {label}
      </Go>
    </span>
  );
}
