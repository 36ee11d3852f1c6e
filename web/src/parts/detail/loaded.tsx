import type { ComponentChildren } from 'preact';
import { Skeleton } from '../../shared/skeleton.tsx';
import type { Fetched } from '../../state/fetched.ts';
import '../../style/loaded.css';

interface LoadedProps<T> {
  of: Fetched<T>;
  /** Text for codes that are no cause for concern. */
  calm?: Record<string, string>;
  children: (value: T) => ComponentChildren;
}

/** Fetched content. The loading notice appears only when loading takes a while. */
export function Loaded<T>({ of, calm = CALM, children }: LoadedProps<T>) {
  if (of.state === 'there') return <>{children(of.value)}</>;
  if (of.state === 'loading') return <Skeleton />;
  const note = calm[of.code];
  if (note !== undefined) return <p class="detail-note">{note}</p>;
  return (
    <p class="detail-problem">
      <code>{of.code}</code> {of.message}
    </p>
  );
}

const CALM: Record<string, string> = {
  turn_unknown: 'No prompt was sent in this turn, or it is no longer stored.',
  agent_unknown: 'This agent is no longer part of the company, so it gets no prompt.',
  unreachable: 'The server does not respond. This loads again when it is back.',
};
