import { LongText } from '../detail/long-text.tsx';

/** The arguments of a call as names and values. Text that is not a JSON object is shown as written. */
export function Fields({ args }: { args: string }) {
  const fields = fieldsOf(args);
  if (fields === null) return <LongText text={args} />;
  if (fields.length === 0) return <p class="quiet">without arguments</p>;
  return (
    <dl class="fields">
      {fields.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd dir="auto">
            {typeof value === 'string' ? (
              <LongText text={value} />
            ) : (
              <LongText text={JSON.stringify(value, null, 2)} />
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function fieldsOf(args: string): [string, unknown][] | null {
  try {
    const value: unknown = JSON.parse(args);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
    return Object.entries(value);
  } catch {
    return null;
  }
}
