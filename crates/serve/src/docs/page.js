// The page of the service: its operations from /openapi.json, each with a form that tries it.
"use strict";

function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
}

async function send(method, path, body, output) {
    const headers = { accept: "application/json, */*" };
    const key = document.getElementById("key").value.trim();
    if (key) headers.authorization = `Bearer ${key}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    output.hidden = false;
    output.textContent = "…";
    try {
        const begun = performance.now();
        const answer = await fetch(path, { method, headers, body });
        let text = await answer.text();
        try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* it is no JSON */ }
        if (text.length > 20000) text = `${text.slice(0, 20000)}\n… ${text.length} characters`;
        output.textContent = `${answer.status} ${answer.statusText}, ${Math.round(performance.now() - begun)} ms\n\n${text}`;
    } catch (error) {
        output.textContent = String(error);
    }
}

function operation(path, method, given) {
    const details = element("details");
    const summary = element("summary");
    summary.append(element("span", method.toUpperCase(), { class: "method" }), element("code", path), ` ${given.summary ?? ""}`);
    details.append(summary);
    if (given.description) details.append(element("p", given.description));
    const fields = [];
    for (const parameter of given.parameters ?? []) {
        const label = element("label", `${parameter.name} (${parameter.in}) `);
        const input = element("input", undefined, { placeholder: parameter.description ?? "" });
        label.append(input);
        details.append(label, element("br"));
        fields.push([parameter, input]);
    }
    let area;
    if (given.requestBody) {
        area = element("textarea", undefined, { spellcheck: "false", "aria-label": "body" });
        const examples = Object.values(given.requestBody.content["application/json"].examples ?? {});
        const choice = element("select", undefined, { "aria-label": "example" });
        for (const example of examples) choice.append(element("option", example.summary));
        const show = () => { area.value = JSON.stringify(examples[choice.selectedIndex]?.value ?? {}, null, 2); };
        choice.addEventListener("change", show);
        show();
        details.append(choice, area);
    }
    const button = element("button", "Send");
    const output = element("pre");
    output.hidden = true;
    button.addEventListener("click", () => {
        let address = path;
        const query = new URLSearchParams();
        for (const [parameter, input] of fields) {
            if (parameter.in === "path") address = address.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
            if (parameter.in === "query" && input.value) query.set(parameter.name, input.value);
        }
        if ([...query].length) address += `?${query}`;
        send(method.toUpperCase(), address, area?.value, output);
    });
    const answers = Object.entries(given.responses ?? {}).map(([status, one]) => `${status}: ${one.description}`).join("; ");
    details.append(element("p", `Answers: ${answers}`), button, output);
    return details;
}

async function begin() {
    const api = await (await fetch("/openapi.json")).json();
    document.getElementById("about").textContent = `${api.info.description} Version ${api.info.version}.`;
    const main = document.getElementById("operations");
    for (const tag of api.tags) {
        main.append(element("h2", tag.name), element("p", tag.description));
        for (const [path, item] of Object.entries(api.paths)) {
            for (const [method, given] of Object.entries(item)) {
                if (given.tags?.includes(tag.name)) main.append(operation(path, method, given));
            }
        }
    }
    const schemas = document.getElementById("schemas");
    for (const [name, schema] of Object.entries(api.components.schemas)) {
        const details = element("details");
        details.append(element("summary", name), element("pre", JSON.stringify(schema, null, 2)));
        schemas.append(details);
    }
}

begin();
