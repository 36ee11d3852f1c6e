import { Binary, type Db, type Document, type MongoClient } from 'mongodb';

/** A command that looks for documents; of an update or a delete, one of its statements. */
export interface MongoQuery {
  collection: string;
  /** The command without what belongs to its connection, as `explain` takes it. */
  command: Document;
  /** Its kind, collection, filter and order, without values. */
  shape: string;
}

const KINDS = ['find', 'aggregate', 'update', 'delete', 'findAndModify', 'count', 'distinct'] as const;
const OF_THE_CONNECTION = ['lsid', '$db', '$clusterTime', 'txnNumber', 'readConcern', 'writeConcern'];

/** Keeps one query of each shape that the client sends. The client must monitor its commands. */
export function recordQueries(client: MongoClient, seen: Map<string, MongoQuery>): void {
  client.on('commandStarted', ({ commandName, command }) => {
    const kind = KINDS.find((each) => each === commandName);
    if (!kind) return;
    for (const query of queriesOf(kind, command)) if (!seen.has(query.shape)) seen.set(query.shape, query);
  });
}

function queriesOf(kind: (typeof KINDS)[number], sent: Document): MongoQuery[] {
  const command = Object.fromEntries(
    Object.entries(sent).filter(([name]) => !OF_THE_CONNECTION.includes(name)),
  );
  const collection = String(command[kind]);
  const query = (filter: unknown, one: Document): MongoQuery => {
    const sort = command['sort'] instanceof Map ? Object.fromEntries(command['sort']) : command['sort'];
    const order = sort ? ` sorted by ${JSON.stringify(sort)}` : '';
    return { collection, command: one, shape: `${kind} ${collection} ${shapeOf(filter)}${order}` };
  };
  const statements = { update: 'updates', delete: 'deletes' } as const;
  if (kind === 'update' || kind === 'delete')
    return (command[statements[kind]] as Document[]).map((each) =>
      query(each['q'], { [kind]: collection, [statements[kind]]: [each] }),
    );
  return [query(command['pipeline'] ?? command['filter'] ?? command['query'] ?? {}, command)];
}

function shapeOf(filter: unknown): string {
  return JSON.stringify(withoutValues(filter));
}

function withoutValues(value: unknown): unknown {
  if (Array.isArray(value)) {
    // As many as a caller has given.
    const each = value.map((one: unknown) => JSON.stringify(withoutValues(one)));
    return [...new Set(each)].map((one) => JSON.parse(one) as unknown);
  }
  if (value instanceof Date || value instanceof Binary) return value.constructor.name;
  if (value === null || typeof value !== 'object') return value === null ? null : typeof value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withoutValues(each)]));
}

/** All values of a field. */
const WHOLE = /^\[M(?:in|ax)Key, M(?:in|ax)Key\]$/;

interface Stage {
  stage: string;
  indexName?: string;
  isSparse?: boolean;
  /** Ranges of each field; a stage that only counts has other things here. */
  indexBounds?: Record<string, unknown>;
}

/** The reasons to refuse the server's plan for a query. */
export async function explainProblems(db: Db, { command, shape }: MongoQuery): Promise<string[]> {
  const stages = stagesOf(await db.command({ explain: command, verbosity: 'queryPlanner' }));
  if (stages.length === 0) return [`the server explains nothing: ${shape}`];
  return stages.flatMap((stage) => {
    const problem = problemOf(stage, shape);
    return problem === null ? [] : [`${problem}: ${shape}`];
  });
}

function problemOf({ stage, indexName, isSparse, indexBounds }: Stage, shape: string): string | null {
  if (stage === 'COLLSCAN') return 'reads the whole collection';
  // The beginning of a word is several ranges of the index, each with an order of its own.
  if (stage === 'SORT' && !shape.includes('terms":{"$regex"')) return 'sorts what no index has sorted';
  const [first] = Object.values(indexBounds ?? {});
  const isWhole = Array.isArray(first) && first.some((range) => WHOLE.test(String(range)));
  // A sparse index has only the documents with the field, which are those with work.
  return isWhole && isSparse !== true ? `reads the whole index ${indexName}` : null;
}

/**
 * The stages of the plan that is taken. Servers nest it in different ways: below `$cursor` for a pipeline, below `queryPlan`
 * with the newer engine of plans.
 */
function stagesOf(explained: unknown): Stage[] {
  if (explained === null || typeof explained !== 'object') return [];
  const below = Object.entries(explained)
    .filter(([name]) => !['rejectedPlans', 'slotBasedPlan', 'command'].includes(name))
    .flatMap(([, each]) => stagesOf(each));
  return 'stage' in explained && typeof explained.stage === 'string' ? [explained as Stage, ...below] : below;
}
