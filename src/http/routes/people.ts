import * as z from 'zod';
import type { Principal } from '../../library/access/index.ts';
import { PersonProfile } from '../../events/index.ts';
import { Refusal } from '../refusal.ts';
import { SMALL_BODY_BYTES } from '../read-json.ts';
import { defineRoute } from '../route.ts';
import { parseInput, PATH_PARAMETERS } from '../schemas.ts';

const ProfileAnswer = z.object({ profile: PersonProfile.nullable() });

/** What agents are told of the people who write: a caller with an author has its own profile, other callers all of them. */
export const peopleRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/people/{person}',
    scopes: ['read'],
    id: 'getPerson',
    summary: 'Profile of a person; null if there is none',
    answer: ProfileAnswer,
    async handle({ caller: { principal }, params: { person: id }, troupe }) {
      checkOwn(principal, id);
      return { profile: await troupe.people.get(id) };
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/people/{person}',
    scopes: ['write'],
    id: 'setPerson',
    summary: 'Replace the profile of a person: name, time zone, preferences',
    body: PersonProfile,
    bodyBytes: SMALL_BODY_BYTES,
    example: { name: 'Ana', timeZone: 'Europe/Berlin', preferences: 'Answer in one paragraph.' },
    answer: ProfileAnswer,
    async handle({ caller: { principal }, params: { person: id }, troupe, body }) {
      checkOwn(principal, id);
      return { profile: await troupe.people.set(id, await body()) };
    },
  }),
  defineRoute({
    method: 'DELETE',
    path: '/api/people/{person}',
    scopes: ['write'],
    id: 'removePerson',
    summary: 'Remove the profile of a person; false if there was none',
    answer: z.object({ removed: z.boolean() }),
    async handle({ caller: { principal }, params: { person: id }, troupe }) {
      checkOwn(principal, id);
      return { removed: await troupe.people.remove(id) };
    },
  }),
] as const;

/** A grant of certain conversations reaches no profiles, because these hold in all conversations. Throws `Refusal`, `event_invalid`. */
function checkOwn({ author, conversations }: Principal, id: string): void {
  parseInput(PATH_PARAMETERS.people.schema, id, 'id');
  if (author ? author.kind === 'user' && author.id === id : conversations === null) return;
  throw new Refusal(403, 'author_refused', 'this caller may only read and change its own profile', {
    person: id,
  });
}
