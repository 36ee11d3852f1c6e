import {
  hasSeveralPeople,
  isUntrusted,
  minute,
  personLabel,
  stateItem,
  type StatedItems,
  type View,
} from '../../context/index.ts';
import type { ActorAddress, Event, LiveItems, PersonProfile } from '../../events/index.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';

/** The person whose event a turn answers. */
export interface PersonFacts {
  /** As headers of messages name the person. */
  label: string;
  /** Null: none is known. */
  profile: PersonProfile | null;
  /** The time of the event where the person is, such as `Wed 11:12 Europe/Berlin`. Null: the zone is unknown. */
  localTime: string | null;
}

/** Null if the turn answers no person. */
export async function readPerson(
  { profileOf, trust }: Pick<EngineDeps, 'profileOf' | 'trust'>,
  { tenant }: ActorAddress,
  { people, upTo }: Pick<View, 'people' | 'upTo'>,
  trigger: Event,
): Promise<PersonFacts | null> {
  const { author, seq } = trigger;
  if (author.kind !== 'user' || trigger.kind === 'command') return null;
  const stored = (await profileOf?.(tenant, author.id)) ?? null;
  // Wishes of somebody who may not give orders would read like orders.
  const isHeard = !isUntrusted(trust ?? null, trigger);
  const { preferences: _, ...rest } = stored ?? {};
  const profile = isHeard ? stored : rest;
  const localTime = profile?.timeZone === undefined ? null : timeIn(profile.timeZone, trigger.at);
  return { label: personLabel(people, author, Math.max(upTo, seq)), profile, localTime };
}

/** The items about the person. The name alone is told while there is only one: messages of several carry their names. */
export function personItems(
  { label, profile }: PersonFacts,
  { people, upTo }: Pick<View, 'people' | 'upTo'>,
  stated: StatedItems,
): LiveItems {
  const known = [
    profile?.name === undefined || profile.name === label ? '' : `goes by ${profile.name}`,
    profile?.timeZone ?? '',
    profile?.preferences === undefined ? '' : `asks for: ${profile.preferences}`,
  ].filter(Boolean);
  const told = stateItem(`person ${label}`, known.length > 0 ? known.join('; ') : null, stated);
  const isAlone = !hasSeveralPeople(people, upTo);
  const isNamed = label.toLowerCase() !== 'user';
  return known.length === 0 && isAlone && isNamed ? { person: label, ...told } : told;
}

/**
 * Whom the reply goes to: the authors of what the turn answers, the newest first. Told only where it is not the last
 * speaker alone, whom the header of the message names. It holds for one turn.
 */
export function targetItem(
  inputs: readonly Event[],
  { people, upTo, agent }: Pick<View, 'people' | 'upTo' | 'agent'>,
): LiveItems {
  const authors = inputs
    .filter(({ kind, author }) => kind === 'message' && author.kind !== 'system' && author.id !== agent)
    .map(({ author }) => author)
    .toReversed();
  const labels = authors.map((author) =>
    author.kind === 'agent' ? `@${author.id}` : personLabel(people, author, upTo),
  );
  const targets = [...new Set(labels)];
  const isLastSpeaker = targets.length === 1 && authors[0]?.id === inputs.at(-1)?.author.id;
  return targets.length === 0 || isLastSpeaker ? {} : { target: `this reply goes to ${targets.join(', ')}` };
}

/** The door that a person's message came by, where something is known of it or of the one before. */
export function channelItem(
  { kind, author, context }: Event,
  channels: ReadonlyMap<string, string>,
  { items }: StatedItems,
): LiveItems {
  const channel = context?.channel;
  if (kind !== 'message' || author.kind !== 'user' || channel === undefined) return {};
  const about = channels.get(channel);
  if (about !== undefined) return { channel: `${channel}: ${about}` };
  return items['channel'] === undefined ? {} : { channel };
}

/** The time of an event in UTC, and where the person is. */
export function timeItem(at: number, person: PersonFacts | null): string {
  return person?.localTime ? `${minute(at)} (${person.localTime})` : minute(at);
}

/** Null for a zone that this machine does not know. */
function timeIn(timeZone: string, at: number): string | null {
  try {
    const format = new Intl.DateTimeFormat('en-GB', {
      timeZone,
      weekday: 'short',
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
    });
    const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, value]));
    return `${parts.get('weekday')} ${parts.get('hour')}:${parts.get('minute')} ${timeZone}`;
  } catch {
    // Thrown for unknown zones, and for times that no Date can hold.
    return null;
  }
}
