type Schema = Readonly<Record<string, unknown>>;

const ALTERNATIVES = ['anyOf', 'oneOf', 'allOf'] as const;

/**
 * The definitions that stand for themselves: their references lead back to them without a list or an object in between.
 * No value follows from such a definition, and a grammar made of it never ends. The definitions between two such loops
 * count, too. Linear in the size of the schemas.
 */
export function loopsIn(definitions: ReadonlyMap<string, unknown>, maxDepth: number): ReadonlySet<string> {
  const edges: Edge[] = [];
  for (const [from, schema] of definitions) {
    for (const to of bareReferences(schema, maxDepth)) if (definitions.has(to)) edges.push([from, to]);
  }
  const backwards = edges.map(([from, to]): Edge => [to, from]);
  const leading = withoutEnds(new Set(definitions.keys()), edges);
  return withoutEnds(leading, backwards);
}

type Edge = readonly [from: string, to: string];

/** Those from which the edges lead on without end. */
function withoutEnds(names: ReadonlySet<string>, edges: readonly Edge[]): ReadonlySet<string> {
  const left = new Set(names);
  const outgoing = new Map<string, number>();
  const leadingTo = new Map<string, string[]>();
  for (const [from, to] of edges) {
    if (!names.has(from) || !names.has(to)) continue;
    outgoing.set(from, (outgoing.get(from) ?? 0) + 1);
    const sources = leadingTo.get(to) ?? [];
    sources.push(from);
    leadingTo.set(to, sources);
  }
  const ends = [...names].filter((name) => !outgoing.has(name));
  for (let name = ends.pop(); name !== undefined; name = ends.pop()) {
    left.delete(name);
    for (const source of leadingTo.get(name) ?? []) {
      const more = (outgoing.get(source) ?? 0) - 1;
      outgoing.set(source, more);
      if (more === 0) ends.push(source);
    }
  }
  return left;
}

/** References that a value of the schema must or may fit itself, not one of its parts. */
function* bareReferences(schema: unknown, depth: number): Generator<string> {
  if (typeof schema !== 'object' || schema === null || depth < 0) return;
  const { $ref } = schema as Schema;
  if (typeof $ref === 'string') yield $ref;
  for (const keyword of ALTERNATIVES) {
    const each = (schema as Schema)[keyword];
    if (Array.isArray(each)) for (const one of each) yield* bareReferences(one, depth - 1);
  }
}
