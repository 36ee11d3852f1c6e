import { Go } from '../../shared/go.tsx';
import { hovered, hovers } from '../../state/hovered.ts';

interface EventLinkProps {
  seq: number;
  label?: string;
  title?: string;
}

/** To one event; whatever else shows it is marked while this is pointed at. */
export function EventLink({ seq, label = `#${seq}`, title = `Event ${seq}` }: EventLinkProps) {
  return (
    <span class={`event-link ${hovered.value === seq ? 'event-hovered' : ''}`} {...hovers(seq)}>
      <Go to={{ event: seq, tab: 'events' }} title={title}>
        {label}
      </Go>
    </span>
  );
}
