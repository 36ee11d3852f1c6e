import { chatChanges } from '../../library/asking/chat.ts';
import type { Event } from '../../events/index.ts';
import type { AgUiEvent } from './protocol.ts';
import type { RoomView } from './room-view.ts';

/** Shows what the log has, and gives the events that tell it. */
export function replay(view: RoomView, events: readonly Event[]): AgUiEvent[] {
  const changesOf = chatChanges();
  return events.flatMap((event) =>
    changesOf({ type: 'event', event }).flatMap((change) => view.take(change)),
  );
}
