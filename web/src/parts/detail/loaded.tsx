import type { ComponentChildren } from 'preact';
import type { Fetched } from '../../state/fetched.ts';

interface LoadedProps<T> {
  of: Fetched<T>;
  /** Text for codes that are no cause for concern. */
  calm?: Record<string, string>;
  children: (value: T) => ComponentChildren;
}

/** Fetched content. The loading notice appears only when loading takes a while. */
export function Loaded<T>({ of, calm = CALM, children }: LoadedProps<T>) {
  if (of.state === 'there') return <>{children(of.value)}</>;
  if (of.state === 'loading') return <p class="detail-loading">Loading…</p>;
  const told = calm[of.code];
  if (told !== undefined) return <p class="detail-note">{told}</p>;
  return (
    <p class="detail-problem">
      <code>{of.code}</code> {of.message}
    </p>
  );
}

const CALM: Record<string, string> = {
  turn_unknown: 'Nothing was sent to a model in this turn, or it is no longer kept.',
  agent_unknown: 'This agent is not part of the company any more, so it would be sent nothing.',
  unreachable: 'The server does not answer. This is asked again when it is back.',
};
