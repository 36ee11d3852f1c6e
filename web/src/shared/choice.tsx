interface ChoiceProps {
  label: string;
  /** Values with their texts. */
  of: readonly (readonly [value: string, text: string])[];
  value: string;
  onChange: (value: string) => void;
}

/** One of several values. */
export function Choice({ label, of, value, onChange }: ChoiceProps) {
  return (
    <select aria-label={label} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      {of.map(([each, text]) => (
        <option key={each} value={each}>
          {text}
        </option>
      ))}
    </select>
  );
}
