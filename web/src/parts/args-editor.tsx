import { useEffect, useId, useRef } from 'preact/hooks';
import type { ApprovalDraft, ArgsDraft } from '../state/approval-draft.ts';
import { argsOf, type ArgField, type ArgsForm, asJson, formOf } from '../state/args-form.ts';
import { mode } from '../state/settings.ts';
import '../style/args-editor.css';

/** Changes the arguments of a call that waits for approval. The draft keeps what was typed. */
export function ArgsEditor({ draft, tool }: { draft: ApprovalDraft; tool: string }) {
  const now = draft.args.value;
  const box = useRef<HTMLFieldSetElement>(null);
  useEffect(() => {
    if (now.state !== 'open' || !draft.wantsFocus) return;
    draft.wantsFocus = false;
    // Does not take the focus from somebody who is typing elsewhere.
    if (document.activeElement?.matches('input,textarea,select')) return;
    box.current?.querySelector<HTMLElement>('input,textarea')?.focus();
  }, [now.state]);
  if (now.state === 'closed') return null;
  if (now.state !== 'open')
    return (
      <p class={now.state === 'failed' ? 'problem' : 'quiet'} role="status">
        {now.state === 'failed' ? `The arguments did not load: ${now.message}` : 'Loading the arguments …'}
      </p>
    );
  return (
    <fieldset ref={box} class="args" disabled={mode === 'read-only'}>
      <legend>Arguments of {tool}</legend>
      <Form now={now} onChange={(form) => (draft.args.value = { ...now, form })} />
    </fieldset>
  );
}

interface FormProps {
  now: ArgsDraft & { state: 'open' };
  onChange: (form: ArgsForm) => void;
}

function Form({ now: { form }, onChange }: FormProps) {
  const typed = argsOf(form);
  const problems = 'problems' in typed ? typed.problems : null;
  if (form.as === 'json') {
    const fields = problems ? form : formOf(form.text);
    return (
      <>
        <Field
          label="JSON"
          text={form.text}
          problem={problems?.get('')}
          onInput={(text) => onChange({ as: 'json', text })}
        />
        {fields.as === 'fields' && <Turn label="Edit as fields" onClick={() => onChange(fields)} />}
      </>
    );
  }
  const replace = (index: number, field: ArgField) =>
    onChange({ as: 'fields', fields: form.fields.with(index, field) });
  return (
    <>
      {form.fields.map((field, index) =>
        field.kind === 'switch' ? (
          <label key={field.name} class="args-switch">
            <input
              type="checkbox"
              checked={field.isOn}
              onChange={(event) => replace(index, { ...field, isOn: event.currentTarget.checked })}
            />
            {field.name}
          </label>
        ) : (
          <Field
            key={field.name}
            label={field.name}
            text={field.text}
            problem={problems?.get(field.name)}
            onInput={(text) => replace(index, { ...field, text })}
          />
        ),
      )}
      <Turn label="Edit as JSON" onClick={() => onChange(asJson(form))} />
    </>
  );
}

interface FieldProps {
  label: string;
  text: string;
  problem: string | undefined;
  onInput: (text: string) => void;
}

function Field({ label, text, problem, onInput }: FieldProps) {
  const id = useId();
  return (
    <div class="args-field">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        rows={1}
        spellcheck={false}
        value={text}
        aria-invalid={problem !== undefined}
        aria-describedby={`${id}-problem`}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <span id={`${id}-problem`} class="problem" role="status">
        {problem}
      </span>
    </div>
  );
}

function Turn({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <button type="button" class="button args-turn" onClick={onClick}>
      {label}
    </button>
  );
}
