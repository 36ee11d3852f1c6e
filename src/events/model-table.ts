/**
 * The entry of a table for a model, found by the model's name. A pattern starts the id or follows a prefix: `openai/`,
 * `us.anthropic.`, `ft:`, `@cf/`. The first match counts, so specific patterns come first. Null for an unknown model.
 */
export function modelTable<T>(
  rows: readonly (readonly [pattern: string, known: T])[],
): (model: string) => T | null {
  const patterns = rows.map(([name, known]) => [new RegExp(`(?:^|[/.:@])(?:${name})`), known] as const);
  return (model) => {
    const id = model.trim().toLowerCase();
    return patterns.find(([pattern]) => pattern.test(id))?.[1] ?? null;
  };
}
