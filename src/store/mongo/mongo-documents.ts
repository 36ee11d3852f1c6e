import type { Db, MongoClient, ReadConcernLevel } from 'mongodb';
import type { Clock } from '../../clock.ts';
import type { Documents } from '../documents/documents.ts';
import type { ActorDoc } from './actor-doc.ts';
import { createBackground } from './background.ts';
import { createActorDocuments } from './mongo-actors.ts';
import type { BlobDoc } from './mongo-blobs.ts';
import { createBlobs } from './mongo-blobs.ts';
import type { ConversationDoc } from './mongo-conversations.ts';
import { createConversations } from './mongo-conversations.ts';
import type { MongoPlace } from './mongo-error.ts';
import { mongoError } from './mongo-error.ts';
import type { EventDoc } from './mongo-events.ts';
import { createEventDocuments } from './mongo-events.ts';
import type { RegisterDoc } from './mongo-registers.ts';
import { createRegisterDocuments } from './mongo-registers.ts';
import { COLLECTIONS } from './mongo-schema.ts';

export interface MongoDocumentsOptions {
  place: MongoPlace;
  clock: Clock;
  keepMs: number;
  onWarning: (error: unknown, what: string) => void;
}

/** The documents of one database. Owns the client: `close` ends it, and with it whatever is still under way. */
export function createMongoDocuments(
  client: MongoClient,
  db: Db,
  readConcern: ReadConcernLevel,
  { place, clock, keepMs, onWarning }: MongoDocumentsOptions,
): Documents {
  const background = createBackground((error, what) => onWarning(mongoError(error, place), what));
  const options = { readConcern: { level: readConcern } };
  const events = db.collection<EventDoc>(COLLECTIONS.events, options);
  const actors = db.collection<ActorDoc>(COLLECTIONS.actors, options);
  const registers = db.collection<RegisterDoc>(COLLECTIONS.registers, options);
  const chunks = db.collection<BlobDoc>(COLLECTIONS.blobs, options);
  const listed = db.collection<ConversationDoc>(COLLECTIONS.conversations, options);

  const blobs = createBlobs(
    chunks,
    async ({ in: where, id }, ref) => {
      const owners = db.collection<{ _id: typeof id; blob?: { ref: string } }>(COLLECTIONS[where], options);
      return (await owners.findOne({ _id: id, 'blob.ref': ref }, { projection: { _id: 1 } })) !== null;
    },
    { clock, background },
  );
  const conversations = createConversations(listed, { clock, background });
  const guard = <T extends object>(target: T) => withMongoErrors(target, place);

  return {
    events: guard(createEventDocuments(events, blobs, conversations)),
    actors: guard(createActorDocuments(actors, blobs)),
    registers: guard(createRegisterDocuments(registers, blobs, { clock, keepMs })),

    onLost(listener) {
      client.on('serverHeartbeatFailed', listener);
      client.on('connectionPoolCleared', listener);
    },

    async close() {
      background.run('noting the newest events of conversations', () => conversations.close());
      await background.settled();
      await client.close();
    },
  };
}

/** Every method as it is, but that what it throws is said in our words. */
function withMongoErrors<T extends object>(target: T, place: MongoPlace): T {
  const methods = Object.entries(target).map(
    ([name, method]: [string, (...args: unknown[]) => Promise<unknown>]) => [
      name,
      async (...args: unknown[]) => {
        try {
          return await method(...args);
        } catch (error) {
          throw mongoError(error, place);
        }
      },
    ],
  );
  return Object.fromEntries(methods) as T;
}
